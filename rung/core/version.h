/* SPDX-License-Identifier: Apache-2.0
 * Version of these headers; rung_version() and rung::version() return that of the library. */
#ifndef RUNG_CORE_VERSION_H
#define RUNG_CORE_VERSION_H

#define RUNG_VERSION_MAJOR 0
#define RUNG_VERSION_MINOR 1
#define RUNG_VERSION_PATCH 0

#endif
