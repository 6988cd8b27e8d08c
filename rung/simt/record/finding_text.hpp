// SPDX-License-Identifier: Apache-2.0
// What findings about accesses have in common. Internal to simt/.
#pragma once

#include <cstdint>
#include <string>

#include "rung/simt/record/recorder.hpp"

namespace rung::simt::record {

bool writes(Access access);
/// `block` is its number in the grid, `thread` within the block.
Finding describe(Kind kind, Recorder& recorder, const Step& step, Where where, std::uint32_t block,
                 std::uint32_t thread);
/// "a write of 4 bytes"
std::string access_of(const Step& step);
/// "64 bytes of cudaMalloc"
std::string name_of(const Memory& memory);
std::uint32_t linear_thread(const Thread& thread);
/// The index in a grid or a block of the block or thread with this number.
uint3 index_in(const dim3& extent, std::uint32_t linear);
/// Sets what the finding's message calls the memory at this address: the region's, or (null) shared
/// memory of the block.
void name_object(const Launch& launch, Finding& finding, std::uintptr_t address,
                 const Region* region, const Block& block);
/// What to do about a race, by who raced; empty for other findings.
std::string race_advice(const Finding& race);

}  // namespace rung::simt::record
