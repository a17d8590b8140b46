#!/usr/bin/env bash
# Brings a MySQL for the tests: unpacks the distribution's package of it, with all that it links to, and installs nothing. Takes about 60 MB
# to load and 330 MB of disk. The mirror is the one that apt uses. Debian has MySQL in sid alone; Ubuntu has 8.0 in each release (not tried).
#     test/support/servers/get-mysql.sh [FOLDER]     default: $MYSQL_FOLDER, or countersign-mysql in the cache folder of the user
# The tests look for it in the same places.
set -euo pipefail
folder="${1:-${MYSQL_FOLDER:-${XDG_CACHE_HOME:-$HOME/.cache}/countersign-mysql}}"
mkdir -p "$folder"
folder="$(cd "$folder" && pwd)"
if [ -x "$folder/usr/sbin/mysqld" ]; then exit 0; fi

# The first source of packages that apt knows: a field of a .sources file, or a line of sources.list.
mirror() {
  local found
  found="$(cat /etc/apt/sources.list.d/*.sources 2>/dev/null | awk '$1 == "URIs:" { print $2; exit }')"
  case "$found" in mirror+file:*) found="$(awk '{ print $1; exit }' "${found#mirror+file:}")" ;; esac
  [ -n "$found" ] || found="$(cat /etc/apt/sources.list 2>/dev/null | awk '$1 == "deb" { print ($2 ~ /^\[/ ? $3 : $2); exit }')"
  echo "$found"
}
source="$(mirror)"
if [ -z "$source" ]; then
  echo "get-mysql: apt has no source of packages on this machine; set MYSQL_URL to a server for tests" >&2
  exit 1
fi

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/root"
: >"$work/status"
distribution="$(. /etc/os-release && echo "$ID")"
keys="/usr/share/keyrings/$distribution-archive-keyring.gpg"
suite=sid
package=mysql-server-core
if [ "$distribution" = ubuntu ]; then
  suite="$(. /etc/os-release && echo "$VERSION_CODENAME")"
  package=mysql-server-core-8.0
fi
echo "deb [signed-by=$keys] $source $suite main" >"$work/sources.list"
options=(
  -oDir::Etc::SourceList="$work/sources.list" -oDir::Etc::SourceParts=/dev/null
  -oDir::State::Lists="$work/lists" -oDir::Cache="$work/cache" -oDir::State::status="$work/status"
  -oAPT::Install-Recommends=false -oAPT::Sandbox::User="$(id -un)" -oDebug::NoLocking=1
)
apt-get "${options[@]}" -qq update >&2
apt-get "${options[@]}" -qq --download-only -y install "$package" >&2
for archive in "$work"/cache/archives/*.deb; do dpkg-deb --extract "$archive" "$work/root"; done
# Whole or not at all: a test may look meanwhile.
cp -a "$work/root" "$folder.new"
rm -rf "$folder"
mv "$folder.new" "$folder"
# The server's own user reads it.
chmod -R go+rX "$folder"
