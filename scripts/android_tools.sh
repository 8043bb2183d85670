#!/bin/sh
# Make sure that what `make android` needs is there: installed by apt-get on Debian as root, else one line of what to do.
set -eu

junit=${1:-/usr/share/java/junit4.jar}
needed="openjdk-17-jdk-headless nodejs npm junit4"
# The virtual phones' tests use these; without them some are left out.
useful="mksh toybox adb"

java_home() { java -XshowSettings:properties -version 2>&1 | sed -n 's/^ *java\.home = //p'; }

has_jdk() {
  command -v java > /dev/null || return 1
  major=$(java -XshowSettings:properties -version 2>&1 | sed -n 's/^ *java\.specification\.version = //p')
  # ct.sym holds the interfaces of older releases; a runtime without the compiler lacks it.
  [ "${major%%.*}" -ge 17 ] && [ -f "$(java_home)/lib/ct.sym" ]
}

lacks() {
  has_jdk || printf ' a JDK of 17 or newer,'
  command -v npm > /dev/null || printf ' npm,'
  [ -f "${junit%%:*}" ] || printf ' junit4 (JUNIT=junit.jar:hamcrest.jar),'
}

lacks_useful() {
  for tool in $useful; do command -v "$tool" > /dev/null || printf ' %s' "$tool"; done
}

install() {
  # shellcheck disable=SC2086
  DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends $needed $useful
}

can_install() { [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null && [ -f /etc/debian_version ]; }

[ -z "$(lacks)$(lacks_useful)" ] && exit 0
if can_install; then
  echo "installing$(lacks)$(lacks_useful) by apt-get" >&2
  install > /dev/null 2>&1 || { apt-get update -qq && install > /dev/null; } || true
fi
missing=$(lacks)
if [ -n "$missing" ]; then
  echo "make android needs${missing%,}; on Debian: apt-get install $needed" >&2
  exit 1
fi
missing=$(lacks_useful)
[ -z "$missing" ] || echo "not there, so that some tests of virtual phones are left out:$missing" >&2
