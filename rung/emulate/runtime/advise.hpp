// SPDX-License-Identifier: Apache-2.0
// Advice about findings, by the program's source: what to change, and where.
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

/// Completes what findings say and advise.
void advise(std::vector<simt::record::Finding>& findings);
void advise(simt::record::Finding& finding);

// The parts of it, one file each.

/// Calls the memory of a finding by its name in the program.
void name_object(simt::record::Finding& finding);
void advise_race(simt::record::Finding& race);
void advise_bounds(simt::record::Finding& finding);
/// Advises the sizeof that the size of an allocation lacks, or that of a copy into the array.
/// Returns false if none seems to be missing.
bool advise_allocation(simt::record::Finding& finding);
bool advise_copy(simt::record::Finding& finding);
/// Advises on a copy to the host whose size counts elements; gives no advice where it does not.
void advise_short_copy(simt::record::Finding& finding);
/// Advises on a read of an array that a guarded load has left unwritten in part.
void advise_uninitialized(simt::record::Finding& finding);
/// Advises on a barrier that lanes of one warp reach in different calls.
void advise_split(simt::record::Finding& finding);

/// Advises on a launch in which no thread can run. `details`: all of the simulator's message.
void advise_deadlock(simt::record::Finding& finding, const std::string& details);
/// Advises on a vector access whose address is no multiple of its size.
void advise_misaligned(simt::record::Finding& finding);

/// Returns true if a finding about a mask is of code that the compiler has merged.
bool is_merged_store(const simt::record::Finding& finding);

/// Returns all parts, one after another.
inline std::string joined(std::initializer_list<std::string_view> parts) {
  std::string whole;
  for (const std::string_view part : parts) whole += part;
  return whole;
}

/// The third argument of a launch, from which a kernel's dynamic shared memory comes.
void advise_launch(simt::record::Finding& finding);
/// Returns the number of elements that the block's last thread needs where this one accesses the
/// one of this index, if each needs one more than the thread before.
std::int64_t elements_needed(const simt::record::Finding& finding, std::int64_t index);

/// Returns whether the other side of a race is another thread. Of many readers one is kept, which
/// may be the one that writes.
bool knows_both(const simt::record::Finding& race);
/// Returns the kernel of a finding in a source: by its name without namespaces and template
/// arguments.
const Function* kernel_of(const SourceTree& tree, const simt::record::Finding& finding);

/// A statement that reads, changes and writes one element.
struct Update {
  const Statement* statement;       // that is to be replaced
  std::string target;               // "bins[b]"
  std::string operation;            // "Add", "Max" ...; "": there is no such atomic function
  std::string operand;              // "1"
  const Statement* load = nullptr;  // by which the element was read before; null: by the same
};
/// Returns what the statement updates, if its operand does not read the array elsewhere.
/// `elsewhere`: even if it does.
std::optional<Update> update_of(const SourceTree& tree, const Statement& one,
                                const std::string& array, bool elsewhere);

/// Gives a finding whose fixes earlier findings have too a short advice that says so.
void shorten_repeated(std::vector<simt::record::Finding>& findings);
/// Spells what the fixes replace as the file does, comments included, and leaves out lines at the
/// end that stay as they are.
void spell_fixes(std::vector<simt::record::Finding>& findings);

/// Returns a fix by which text of a statement is replaced.
simt::record::Fix replacement(const SourceTree& tree, const char* kind, const Statement& one,
                              std::string text);

}  // namespace rung::cuda
