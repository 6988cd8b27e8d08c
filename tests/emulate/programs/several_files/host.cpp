// SPDX-License-Identifier: Apache-2.0
// Host code alone.
int host_factor() { return 7; }
