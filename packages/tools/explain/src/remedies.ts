const remedies: ReadonlyMap<string, string> = new Map([
  [
    "authority-conflict",
    "Send one Host, the same as :authority: the request names its server twice, or two of them.",
  ],
  [
    "body-not-covered",
    'Send Content-Digest and cover "content-digest" in Signature-Input: nothing signs the body.',
  ],
  [
    "key-store-unavailable",
    "Nothing to change: the key store gave no answer, so nobody knows whether the signature fits.",
  ],
  ["method-invalid", "Send a method that is a token, such as POST."],
  ["method-override", "Send the request by its own method, without X-HTTP-Method-Override or its like."],
  [
    "nonce-replayed",
    "Use a nonce of its own for each request, also when it is sent again: this one was used before.",
  ],
  ["query-not-covered", 'Cover "@query" in Signature-Input, or send the request without a query.'],
  ["request-aborted", "Nothing to change: the client closed the connection before the body was complete."],
  [
    "signature-ambiguous",
    "Send one signature that fits the profile: there are several in Signature-Input, and none is chosen by guess.",
  ],
  [
    "target-invalid",
    "Send the request target as a path and query alone, without a full URL, dot segments, double slashes at its start, # or \\.",
  ],
]);

/** The remedy of a code that says all by itself; undefined for any other code. The page of codes shows it too. */
export function remedyOf(code: string): string | undefined {
  return remedies.get(code);
}
