import type { MariadbServer } from "./mariadb-server.mjs";

export function startMysqlServer(options?: readonly string[]): Promise<MariadbServer | undefined>;
