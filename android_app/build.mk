# The runner's Kotlin core, its shell for virtual phones, and their tests; warnings are errors.
ANDROID := build/android
KOTLIN := $(ANDROID)/kotlin/node_modules/kotlin-compiler/lib
JUNIT ?= /usr/share/java/junit4.jar:/usr/share/java/hamcrest.jar
KOTLIN_JARS := kotlin-compiler kotlin-stdlib kotlin-reflect kotlinx-coroutines-core-jvm kotlin-script-runtime annotations-13.0
empty :=
# One pass over the sources is too short for the second compiler.
KOTLINC = java -Xmx1g -XX:+UseSerialGC -XX:TieredStopAtLevel=1 \
  -cp $(subst $(empty) $(empty),:,$(KOTLIN_JARS:%=$(KOTLIN)/%.jar)) org.jetbrains.kotlin.cli.jvm.K2JVMCompiler \
  -no-stdlib -no-reflect -Werror -progressive
# Android 10's own library is near Java 8's, with what came in 9 and later left out.
AS_ON_ANDROID := -jvm-target 1.8 -Xjdk-release=1.8
# Folders too, so that a file that went away is noticed.
sources = $(shell find android_app/$(1) -type d -o -name '*.kt')
kotlin_files = $$(find android_app/$(1) -name '*.kt')

.PHONY: android android-jars android-check

android: $(ANDROID)/tested.done ## Compile the Kotlin runner and run its tests

android-jars: $(ANDROID)/virtual.jar ## Compile the Kotlin runner for virtual phones

android-check: $(ANDROID)/virtual.jar $(ANDROID)/core-tests.jar $(ANDROID)/virtual-tests.jar

# A jar gets its name last, so that a compiler that was stopped leaves nothing behind.
$(ANDROID)/core.jar: $(call sources,core/src) android_app/build.mk $(ANDROID)/kotlin.done
	@echo "compiling core"
	@$(KOTLINC) $(AS_ON_ANDROID) -Xexplicit-api=strict -module-name core \
	  -cp $(KOTLIN)/kotlin-stdlib.jar -d $(ANDROID)/new-core.jar $(call kotlin_files,core/src)
	@mv $(ANDROID)/new-core.jar $@

$(ANDROID)/core-tests.jar: $(call sources,core/test) $(ANDROID)/core.jar
	@echo "compiling core-tests"
	@$(KOTLINC) $(AS_ON_ANDROID) -module-name core-tests -Xfriend-paths=$(ANDROID)/core.jar \
	  -cp $(ANDROID)/core.jar:$(KOTLIN)/kotlin-stdlib.jar:$(JUNIT) -d $(ANDROID)/new-core-tests.jar $(call kotlin_files,core/test)
	@mv $(ANDROID)/new-core-tests.jar $@

$(ANDROID)/virtual.jar: $(call sources,virtual/src) android_app/virtual/manifest.txt $(ANDROID)/core.jar
	@echo "compiling virtual"
	@$(KOTLINC) -jvm-target 11 -Xexplicit-api=strict -module-name virtual \
	  -cp $(ANDROID)/core.jar:$(KOTLIN)/kotlin-stdlib.jar -d $(ANDROID)/new-virtual.jar $(call kotlin_files,virtual/src)
	@jar --update --file $(ANDROID)/new-virtual.jar --manifest android_app/virtual/manifest.txt
	@cp $(KOTLIN)/kotlin-stdlib.jar $(ANDROID)/kotlin-stdlib.jar
	@mv $(ANDROID)/new-virtual.jar $@

$(ANDROID)/virtual-tests.jar: $(call sources,virtual/test) $(ANDROID)/virtual.jar
	@echo "compiling virtual-tests"
	@$(KOTLINC) -jvm-target 11 -module-name virtual-tests -Xfriend-paths=$(ANDROID)/virtual.jar \
	  -cp $(ANDROID)/virtual.jar:$(ANDROID)/core.jar:$(KOTLIN)/kotlin-stdlib.jar:$(JUNIT) \
	  -d $(ANDROID)/new-virtual-tests.jar $(call kotlin_files,virtual/test)
	@mv $(ANDROID)/new-virtual-tests.jar $@

# Each class that ends in Test is a JUnit class; the tests read protocol/ from the folder that make runs in.
$(ANDROID)/tested.done: $(ANDROID)/core-tests.jar $(ANDROID)/virtual-tests.jar $(wildcard protocol/examples/*)
	@java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 \
	  -cp $(ANDROID)/core-tests.jar:$(ANDROID)/virtual-tests.jar:$(ANDROID)/virtual.jar:$(ANDROID)/core.jar:$(KOTLIN)/kotlin-stdlib.jar:$(JUNIT) \
	  org.junit.runner.JUnitCore $$(find android_app/*/test -name '*Test.kt' | \
	  sed -E 's#android_app/([a-z]+)/test/(.*/)?([A-Za-z0-9]+)\.kt#org.ondeviceprofiler.\1.\3#')
	@touch $@

# The lock file holds the compiler's hash, and no address: npm takes it from wherever it is told to.
$(ANDROID)/kotlin.done: android_app/package.json android_app/package-lock.json scripts/android_tools.sh
	@scripts/android_tools.sh '$(JUNIT)'
	@mkdir -p $(ANDROID)/kotlin
	@cp android_app/package.json android_app/package-lock.json $(ANDROID)/kotlin/
	@echo "fetching the Kotlin compiler"
	@NODE_EXTRA_CA_CERTS="$${NODE_EXTRA_CA_CERTS:-$${SSL_CERT_FILE:-$$PIP_CERT}}" npm ci --prefix $(ANDROID)/kotlin --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@
