// What both sides of the wire agree on.
export const payoutPath = "/api/v1/transaction";
