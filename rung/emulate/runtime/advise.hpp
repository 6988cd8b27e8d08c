// SPDX-License-Identifier: Apache-2.0
// Advice on findings, derived from the program's source: what to change, and where.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rung/emulate/runtime/source_tree.hpp"
#include "rung/simt/record.hpp"

namespace rung::cuda {

/// Completes the messages of findings and adds advice.
void advise(std::vector<simt::record::Finding>& findings);
void advise(simt::record::Finding& finding);

// Parts of advise(), one file each.

/// Sets the finding's object to the name that the memory has in the program.
void name_object(simt::record::Finding& finding);
void advise_race(simt::record::Finding& race);
void advise_bounds(simt::record::Finding& finding);
/// Advises on an allocation, or a copy to the array, whose size lacks a sizeof. Returns false if
/// none seems to be missing.
bool advise_allocation(simt::record::Finding& finding);
bool advise_copy(simt::record::Finding& finding);
/// Advises on a copy to the host whose size counts elements and lacks a sizeof.
void advise_short_copy(simt::record::Finding& finding);
/// Advises on a read of an array that a guarded load leaves partly unwritten.
void advise_uninitialized(simt::record::Finding& finding);
/// Advises on a barrier that lanes of one warp reach at different call sites.
void advise_split(simt::record::Finding& finding);

/// Advises on a deadlocked launch. `details`: the simulator's complete message.
void advise_deadlock(simt::record::Finding& finding, const std::string& details);
/// Advises on a vector access whose address is not a multiple of its size.
void advise_misaligned(simt::record::Finding& finding);

/// Returns true if a finding about a mask is caused by tail merging in the compiler.
bool is_merged_store(const simt::record::Finding& finding);

/// Concatenates the parts.
inline std::string joined(std::initializer_list<std::string_view> parts) {
  std::string whole;
  for (const std::string_view part : parts) whole += part;
  return whole;
}

/// Advises on the third launch argument, the size of dynamic shared memory in bytes.
void advise_launch(simt::record::Finding& finding);
/// Returns the number of elements that the block's last thread needs, given that the finding's
/// thread accesses `index` and each thread needs one more element than its predecessor.
std::int64_t elements_needed(const simt::record::Finding& finding, std::int64_t index);

/// Returns true if the two sides of a race are known to be different threads. Of many readers only
/// one is recorded, which may be the writer itself.
bool knows_both(const simt::record::Finding& race);
/// Returns the finding's kernel in a source file, by its name without namespaces and template
/// arguments.
const Function* kernel_of(const SourceTree& tree, const simt::record::Finding& finding);

/// A statement that reads, modifies and writes one element.
struct Update {
  const Statement* statement;       // statement to be replaced
  std::string target;               // "bins[b]"
  std::string operation;            // "Add", "Max" ...; "": no atomic function exists
  std::string operand;              // "1"
  const Statement* load = nullptr;  // preceding load of the element; null: in `statement`
};
/// Returns the update that the statement performs; nullopt if its operand also reads the array,
/// unless `elsewhere`.
std::optional<Update> update_of(const SourceTree& tree, const Statement& one,
                                const std::string& array, bool elsewhere);

/// Replaces advice with the same fixes as an earlier finding by a short reference.
void shorten_repeated(std::vector<simt::record::Finding>& findings);
/// Sets the text that each fix replaces to the exact text of the file, comments included, and drops
/// unchanged trailing lines.
void spell_fixes(std::vector<simt::record::Finding>& findings);

/// Returns a fix that replaces the text of a statement.
simt::record::Fix replacement(const SourceTree& tree, const char* kind, const Statement& one,
                              std::string text);

}  // namespace rung::cuda
