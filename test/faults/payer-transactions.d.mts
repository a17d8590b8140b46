/** Of the key by which the payouts are signed. */
export const keyid: string;
