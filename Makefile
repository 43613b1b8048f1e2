# SPDX-License-Identifier: Apache-2.0
# Two commands for a start. For work on tkc itself use the presets of CMakePresets.json.
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
BUILD := build/release

.PHONY: help demo test prepare
help:
	@echo "make demo   install what is missing, build, run the example kernels on the CPU"
	@echo "make test   install what is missing, build, run all tests that need no GPU"

demo:
	@scripts/install-deps
	@cmake --preset release
	@cmake --build --preset release --target tkc libtkc tkcrt tkc_pages -j$(JOBS)
	@PATH="$(CURDIR)/$(BUILD):$$PATH" TKC="$(CURDIR)/$(BUILD)/tkc" bash examples/demo.sh

test: prepare
	@ctest --test-dir $(BUILD) -LE gpu --output-on-failure --no-tests=error -j2

prepare:
	@scripts/install-deps
	@cmake --preset release
	@cmake --build --preset release -j$(JOBS)
