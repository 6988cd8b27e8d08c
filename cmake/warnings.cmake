# SPDX-License-Identifier: Apache-2.0
set(rung_warnings -Wall -Wextra -Wpedantic -Wshadow=local -Wnon-virtual-dtor -Wno-missing-field-initializers
    -Wno-restrict)  # g++ 12 sees overlapping copies in std::string + literal where there are none
