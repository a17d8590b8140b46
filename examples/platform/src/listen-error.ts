import { reasonOf, SettingError } from "./setting-error.ts";

/** Why nobody can listen there, as a SettingError that names PORT or HOST; `remedy` ends the message about a port in use. */
export function listenError(
  error: NodeJS.ErrnoException,
  { host, port }: { readonly host: string; readonly port: number },
  remedy = "",
): SettingError {
  if (error.code === "EADDRINUSE") {
    return new SettingError("PORT", `a free port, ${port} is in use on ${host}${remedy}`);
  }
  if (error.code === "EACCES") return new SettingError("PORT", `a port that this user may open, not ${port}`);
  return new SettingError("HOST", `an address of this machine (${reasonOf(error)})`, host);
}
