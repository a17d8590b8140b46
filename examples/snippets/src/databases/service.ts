/** Who may call: the same for every library. */
export const service = {
  addresses: { allow: ["192.0.2.10"] },
  // TEST KEY of RFC 9421 appendix B.1.4; put the service's public key here.
  signature: {
    keys: {
      "test-key-ed25519": "JrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs=",
    },
  },
};
