// SPDX-License-Identifier: Apache-2.0
// Advice on sizes that count elements where bytes are required: a missing sizeof.
#include <algorithm>

#include "rung/emulate/runtime/advise.hpp"
#include "rung/emulate/runtime/call_sizes.hpp"

namespace rung::cuda {
namespace {

namespace record = simt::record;
using record::Finding;

/// Returns true if a kernel argument has this value, or a product of two arguments has it.
bool is_argument(const Finding& finding, std::int64_t value) {
  for (const auto& [number, integer] : finding.integers) {
    if (integer == value) return true;
    for (const auto& [other, factor] : finding.integers) {
      if (other > number && integer * factor == value) return true;
    }
  }
  return false;
}

/// Returns true if the size is sizeof(p), where p is a pointer.
bool is_size_of_pointer(const SizedCall& call) {
  const emulate::TokenStream& tokens = call.tree->tokens();
  const std::size_t at = call.size.begin;
  if (!tokens[at].is("sizeof") || !tokens[at + 1].is("(") || call.size.end != at + 4) return false;
  const std::string_view name = tokens[at + 2].text;
  for (std::size_t i = 2; i < tokens.size(); ++i) {
    if (tokens[i].is(name) && tokens[i - 1].is("*") && tokens[i - 2].is_identifier()) return true;
  }
  return false;
}

/// Returns the copy into the allocated array if the allocation's size is the size of the copy times
/// a sizeof; null if there is none.
const SizedCall* short_copy(const std::vector<SizedCall>& copies, const SizedCall& allocation) {
  for (const SizedCall& one : copies) {
    if (one.pointer != allocation.pointer) continue;
    if (is_product_of(*one.tree, allocation.size, one.size)) return &one;
  }
  return nullptr;
}

}  // namespace

bool advise_allocation(Finding& finding) {
  const record::Object& object = finding.object;
  const auto size = static_cast<std::int64_t>(object.element_bytes);
  if (object.parameter < 0 || size < 2 || object.offset < 0 || finding.other_line == 0) {
    return false;
  }
  const auto bytes = static_cast<std::int64_t>(object.bytes);
  const auto call = allocation_at(finding.other_file, finding.other_line);
  if (call.has_value() && is_size_of_pointer(*call)) {
    constexpr std::string_view mend =
        " is the size of the pointer, not of what it points to; multiply the number of elements by "
        "sizeof(";
    finding.advice = joined({"line ", std::to_string(finding.other_line), " allocates ",
                             std::to_string(bytes), " bytes: ", call->text(), mend, object.type,
                             ")"});
    return true;
  }
  if (object.offset / size >= bytes) return false;  // that many elements would not suffice either
  const bool known = is_argument(finding, bytes);
  if (call.has_value() ? !counts_elements(*call->tree, call->size) : !known) return false;
  const std::string type = object.type.empty() ? "the element" : object.type;
  finding.advice =
      joined({"line ", std::to_string(finding.other_line), " allocates ", std::to_string(bytes),
              " bytes, and ", std::to_string(bytes), " elements of ", type, " need ",
              std::to_string(bytes * size), ": `* sizeof(", type, ")` is missing"});
  if (!call.has_value()) return true;
  const record::Fix fix = call->with_sizeof(type);
  finding.advice += " in " + fix.from;
  finding.fixes.push_back(fix);
  return true;
}

bool advise_copy(Finding& finding) {
  const record::Object& object = finding.object;
  if (object.parameter < 0 || object.element_bytes < 2 || finding.other_line == 0) return false;
  const auto allocation = allocation_at(finding.other_file, finding.other_line);
  if (!allocation.has_value()) return false;
  const std::vector<SizedCall> copies = copies_without_sizeof(*allocation->tree);
  const SizedCall* const copy = short_copy(copies, *allocation);
  if (copy == nullptr) return false;
  const auto bytes = object.bytes / object.element_bytes;
  if (static_cast<std::uint64_t>(object.offset) < bytes) return false;  // the byte has been copied
  finding.advice = joined({"line ", std::to_string(copy->line()), " copies ", std::to_string(bytes),
                           " of the ", std::to_string(object.bytes), " bytes: `* sizeof(",
                           object.type, ")` is missing in ", copy->with_sizeof(object.type).from});
  finding.fixes.push_back(copy->with_sizeof(object.type));
  return true;
}

void advise_short_copy(Finding& finding) {
  const auto allocation = allocation_at(finding.other_file, finding.other_line);
  if (!allocation.has_value()) return;
  const SourceTree& tree = *allocation->tree;
  for (const SizedCall& one : copies_without_sizeof(tree)) {
    const bool here = one.line() == finding.line &&
                      tree.mentions(one.source.begin, one.source.end, allocation->pointer);
    if (!here || !is_product_of(tree, allocation->size, one.size)) continue;
    for (std::size_t i = allocation->size.begin; i < allocation->size.end; ++i) {
      if (!tree.tokens()[i].is("sizeof")) continue;
      const std::string type = tree.text(i + 2, tree.tokens().closing(i + 1));
      const record::Fix fix = one.with_sizeof(type);
      finding.advice = "`* sizeof(" + type + ")` is missing in " + fix.from;
      finding.fixes.push_back(fix);
      return;
    }
  }
}

}  // namespace rung::cuda
