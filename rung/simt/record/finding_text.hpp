// SPDX-License-Identifier: Apache-2.0
// Text shared by findings about accesses. Internal to simt/.
#pragma once

#include <cstdint>
#include <string>

#include "rung/simt/record/recorder.hpp"

namespace rung::simt::record {

bool writes(Access access);
/// Returns a finding without text. `block` is the linear index of the block in the grid, `thread`
/// that of the thread in the block.
Finding describe(Kind kind, Recorder& recorder, const Step& step, Where where, std::uint32_t block,
                 std::uint32_t thread);
/// Formats an access: "a write of 4 bytes".
std::string access_of(const Step& step);
/// Formats a memory region: "64 bytes of cudaMalloc".
std::string name_of(const Memory& memory);
std::uint32_t linear_thread(const Thread& thread);
/// Converts a linear block or thread number to a 3D index.
uint3 index_in(const dim3& extent, std::uint32_t linear);
/// Sets the finding's object to the memory at `address`: in `region`, or in the block's shared
/// memory if `region` is null.
void name_object(const Launch& launch, Finding& finding, std::uintptr_t address,
                 const Region* region, const Block& block);
/// Returns the message (source_advice(): the advice) about a write by `who` to the source of a copy
/// in flight that `starter` has issued. `bulk`: a bulk copy, which an mbarrier tracks.
std::string source_message(const char* who, const char* starter, bool bulk,
                           const std::string& object);
std::string source_advice(bool bulk);
/// Returns advice on a race by its racers; "" for other findings.
std::string race_advice(const Finding& race);

}  // namespace rung::simt::record
