// compileAllowlist: the last line of the input is an address, those before it are rules. Where a rule is accepted, node:net has to
// know it too, and its BlockList has to agree about the address.
import { BlockList, isIP } from "node:net";
import { compileAllowlist } from "@countersign/ip-allowlist";
import { assertProperty, assertSame, attempt, words } from "../property.mjs";

export const seeds = [
  "10.0.0.0/8\n192.168.1.1\n10.255.255.255",
  "2001:db8::/32\nfe80::1\n2001:db8:ffff::1",
  "::ffff:10.0.0.0/104\n10.1.2.3",
  "10.0.0.0/8\n::ffff:10.1.2.3",
  "::ffff:0a00:0/112\n::ffff:10.0.1.2",
  "::/0\n0.0.0.0/0\n1:2:3:4:5:6:7:8",
  "0.0.0.0/1\n128.0.0.0/1\n255.255.255.255",
  "::/1\n8000::/1\nffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255",
  "10.0.0.1/8\n10.0.0.1",
  "1.2.3.4/33\n1.2.3.4",
  "fe80::1%eth0\nfe80::1%eth0",
  "",
];
export const maxLength = 200;
export const dictionary = [
  "\n",
  " ",
  "\t",
  "\x00",
  "\xb2",
  ...words`
    :: : . / /0 /32 /33 /96 /128 /129 /01 ::ffff: ::ffff:0:0/96 %1 [ ] 0.0.0.0 255.255.255.255 01
    256 ffff 10000 ::1 64:ff9b::1.2.3.4 2001:DB8:: 0x7f 1.2.3 , - +1
  `,
];

const isAnyAddress = compileAllowlist(["0.0.0.0/0", "::/0"], { dangerouslyAllowAnyAddress: true });

/** The address as the URL standard writes it, so that ::ffff:1.2.3.4 has one form: the IPv4 address. */
function unmapped(address) {
  if (isIP(address) === 4) return { address, family: "ipv4" };
  const { hostname } = new URL(`http://[${address}]`);
  const [, high, low] = /^\[::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})\]$/.exec(hostname) ?? [];
  if (high === undefined) return { address: hostname.slice(1, -1), family: "ipv6" };
  const octets = [high, low]
    .map((group) => Number.parseInt(group, 16))
    .flatMap((group) => [group >> 8, group & 0xff]);
  return { address: octets.join("."), family: "ipv4" };
}

function readRule(rule) {
  const [written, prefix, ...rest] = rule.split("/");
  const isAddress = isIP(written) !== 0 && !written.includes("%");
  assertProperty(isAddress && rest.length === 0, "an accepted rule is an address", { rule });
  assertProperty(prefix === undefined || /^\d{1,3}$/.test(prefix), "an accepted prefix length is a number", {
    rule,
  });
  const { address, family } = unmapped(written);
  const width = family === "ipv4" ? 32 : 128;
  const mapped = isIP(written) === 6 && family === "ipv4" ? 96 : 0;
  const length = prefix === undefined ? width : Number(prefix) - mapped;
  return { address, family, width, length };
}

// One for each family: in a list of both, BlockList takes an IPv4 address for a part of ::/1 and the like.
function createBlockLists(rules) {
  const lists = { ipv4: new BlockList(), ipv6: new BlockList() };
  // It throws for a prefix length beyond the width.
  for (const { address, family, length } of rules) lists[family].addSubnet(address, length, family);
  return lists;
}

/** The first and last address of a rule, and those before and behind it. */
function edgesOf({ address, family, width, length }) {
  const size = 1n << BigInt(width - length);
  const first = family === "ipv4" ? readIPv4(address) : readIPv6(address);
  const edges = [first - 1n, first, first + size - 1n, first + size];
  return edges
    .filter((edge) => edge >= 0n && edge < 1n << BigInt(width))
    .map((edge) => (family === "ipv4" ? writeIPv4(edge) : writeIPv6(edge)));
}

function readIPv4(address) {
  return BigInt(`0x${Buffer.from(address.split(".").map(Number)).toString("hex")}`);
}

function writeIPv4(number) {
  return [24n, 16n, 8n, 0n].map((shift) => (number >> shift) & 0xffn).join(".");
}

function readIPv6(address) {
  const [before, behind = []] = address
    .split("::")
    .map((part) => part.split(":").filter((group) => group !== ""));
  const groups = [
    ...before,
    ...Array.from({ length: 8 - before.length - behind.length }, () => "0"),
    ...behind,
  ];
  return BigInt(`0x${groups.map((group) => group.padStart(4, "0")).join("")}`);
}

function writeIPv6(number) {
  return number.toString(16).padStart(32, "0").match(/.{4}/g).join(":");
}

export function run(input) {
  const lines = input.toString("latin1").split("\n");
  const address = lines.pop();
  const isAddress = isIP(address) !== 0 && !address.includes("%");
  assertSame(isAnyAddress(address), isAddress, "an address is what node:net takes for one without a zone");

  const { value: isAllowed, error } = attempt(() =>
    compileAllowlist(lines, { dangerouslyAllowAnyAddress: true }),
  );
  if (error !== undefined) {
    assertProperty(error instanceof TypeError, "a refusal of a rule is a TypeError", { error });
    return error.message.replace(/entries.*?\bmust/, "must").replace(/; got .*/s, "");
  }
  const rules = lines.map(readRule);
  const lists = createBlockLists(rules);
  const isListed = (text) => {
    const { address: known, family } = unmapped(text);
    return lists[family].check(known, family);
  };
  assertSame(
    isAllowed(address),
    isAddress && isListed(address),
    "an address is allowed where BlockList has it",
  );
  for (const edge of rules.flatMap(edgesOf)) {
    assertSame(
      isAllowed(edge),
      isListed(edge),
      "an address at the edge of a rule is allowed where BlockList has it",
    );
  }
  return `${Math.min(4, lines.length)} ${isAddress} ${isAllowed(address)}`;
}
