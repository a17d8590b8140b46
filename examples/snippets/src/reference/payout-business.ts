import type { Payout } from "countersign/payout";

declare global {
  namespace Express {
    interface PayoutBusiness {
      readonly accountId: string;
    }
  }
}

export const accountOf = ({ business }: Payout): string | undefined =>
  business?.accountId;
