// compileAllowlist: the last line of the input is an address, those before it are rules. Where a rule is accepted, node:net has to
// know it too, and its BlockList has to agree about the address.
import { BlockList, isIP } from "node:net";
import { compileAllowlist } from "@countersign/ip-allowlist";
import { assertProperty, assertSame, attempt } from "../property.mjs";

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
  [
    "\n",
    "::",
    ":",
    ".",
    "/",
    "/0",
    "/32",
    "/33",
    "/96",
    "/128",
    "/129",
    "/01",
    "::ffff:",
    "::ffff:0:0/96",
    "%1",
    "[",
    "]",
  ],
  [
    "0.0.0.0",
    "255.255.255.255",
    "01",
    "256",
    "ffff",
    "10000",
    "::1",
    "64:ff9b::1.2.3.4",
    "2001:DB8::",
    " ",
    "0x7f",
    "1.2.3",
  ],
  [",", "-", "+1", "\t", "\x00", "\xb2"],
].flat();

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

// One for each family: in a list of both, BlockList takes an IPv4 address for a part of ::/1 and the like.
function createBlockLists(rules) {
  const lists = { ipv4: new BlockList(), ipv6: new BlockList() };
  for (const rule of rules) {
    const [written, prefix, ...rest] = rule.split("/");
    const version = isIP(written);
    assertProperty(
      version !== 0 && rest.length === 0 && !written.includes("%"),
      "an accepted rule is an address",
      { rule },
    );
    const { address, family } = unmapped(written);
    const mapped = version === 6 && family === "ipv4" ? 96 : 0;
    const width = family === "ipv4" ? 32 : 128;
    assertProperty(
      prefix === undefined || /^\d{1,3}$/.test(prefix),
      "an accepted prefix length is a number",
      { rule },
    );
    // BlockList throws for a prefix length beyond the width.
    lists[family].addSubnet(address, prefix === undefined ? width : Number(prefix) - mapped, family);
  }
  return lists;
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
  const lists = createBlockLists(lines);
  const given = isAddress ? unmapped(address) : undefined;
  const expected = given !== undefined && lists[given.family].check(given.address, given.family);
  assertSame(isAllowed(address), expected, "an address is allowed where BlockList has it");
  return `${Math.min(4, lines.length)} ${isAddress} ${expected}`;
}
