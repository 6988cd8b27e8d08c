# SPDX-License-Identifier: Apache-2.0
set(rung_warnings -Wall -Wextra -Wpedantic -Wshadow=local -Wnon-virtual-dtor -Wno-missing-field-initializers)
