import { testNoticed } from "./wrong/noticed.ts";
import { wrongStores } from "./wrong/wrong-stores.ts";

testNoticed(wrongStores);
