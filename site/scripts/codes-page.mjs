export async function codesPage() { return "# Codes\n"; }
