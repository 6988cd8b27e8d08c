// SPDX-License-Identifier: Apache-2.0
// Issue and completion of wgmma products; matrix_product.cpp has the arithmetic.
#include "rung/simt/wgmma.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "rung/simt/matrix_product.hpp"
#include "rung/simt/random.hpp"
#include "rung/simt/record/recorder.hpp"
#include "rung/simt/scheduler.hpp"
#include "rung/simt/warpgroup.hpp"

namespace rung::simt {
namespace {

std::size_t linear_index(const Thread& thread) {
  return static_cast<std::size_t>(&thread - thread.block->threads.data());
}

/// Returns the calling thread's warpgroup; fails the launch if it is incomplete.
Warpgroup& warpgroup(Worker& here, const char* operation, Place place) {
  Block& block = *here.current().block;
  const std::size_t index = linear_index(here.current()) / warpgroup_threads;
  if (block.threads.size() < (index + 1) * warpgroup_threads) {
    here.fail(std::string(operation) + " in a warpgroup of fewer than 128 threads", place);
  }
  if (block.warpgroups.size() <= index) block.warpgroups.resize(index + 1);
  if (block.warpgroups[index] == nullptr) block.warpgroups[index] = std::make_unique<Warpgroup>();
  return *block.warpgroups[index];
}

constexpr std::size_t max_sums = 128;

std::uint64_t hash_of(const SumPlaces& sums, std::size_t count) {
  std::uint32_t words[max_sums];
  sums.read(words, count);
  std::uint64_t hash = count;
  for (std::size_t i = 0; i < count; ++i) {
    hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
  }
  return hash;
}

void remember(Warpgroup::Member& member, const SumPlaces& sums, std::size_t words) {
  const auto known = std::find_if(member.written.begin(), member.written.end(),
                                  [&](const auto& one) { return one.sums == sums; });
  const std::uint64_t hash = hash_of(sums, words);
  if (known != member.written.end()) {
    known->hash = hash;
  } else {
    member.written.push_back({sums, hash});
  }
}

/// Returns the error message if the thread lacks a wgmma.fence that the product needs; null
/// otherwise.
const char* missing_fence(const Warpgroup::Member& member, const SumPlaces& sums,
                          std::size_t words) {
  if (!member.fenced) return "wgmma without a wgmma_fence() before it";
  for (const Warpgroup::Registers& known : member.written) {
    if (!(known.sums == sums) || known.hash == hash_of(sums, words)) continue;
    return "wgmma adds to sums that were changed since the last one: wgmma_fence() between";
  }
  return nullptr;
}

/// Returns the number of the product in flight with the same sums; -1 if there is none. Sets
/// `mixed` if a product in flight uses only part of the sums, or has them in another order.
std::int64_t product_before(Warpgroup& group, const Warpgroup::Member& member,
                            const SumPlaces& sums, std::size_t words, bool& mixed) {
  for (std::size_t i = member.sums.size(); i-- > 0;) {
    const std::int64_t number = member.collected + static_cast<std::int64_t>(i);
    const auto its_words = static_cast<std::size_t>(group.product(number).shape.n) / 2;
    if (member.sums[i] == sums && its_words == words) return number;
    mixed |= sums.overlaps(words, member.sums[i], its_words);
    if (mixed) break;
  }
  return -1;
}

/// Returns the warpgroup's product with this number. The first thread to issue it defines it; a
/// later thread that issues a different product fails the launch.
MatrixProduct& find_product(Worker& here, Warpgroup& group, const MatrixProduct& mine,
                            std::int64_t number) {
  if (number == group.first + static_cast<std::int64_t>(group.products.size())) {
    group.products.push_back(mine);
    return group.products.back();
  }
  MatrixProduct& product = group.product(number);
  if (product.shape == mine.shape && product.a_in_registers == mine.a_in_registers &&
      product.a_matrix == mine.a_matrix && product.b_matrix == mine.b_matrix &&
      product.accumulate == mine.accumulate && product.before == mine.before) {
    return product;
  }
  here.blame(
      "simulated GPU: threads of a warpgroup issue different wgmma: other shapes, descriptors or "
      "sums than those at " +
          to_string(product.place),
      here.current(), &mine.place);
  here.abandon();
}

void carry_out(Worker& here, Block& block, Warpgroup& group, std::int64_t number) {
  MatrixProduct& product = group.product(number);
  if (product.done) return;
  if (product.before >= 0) {
    MatrixProduct& before = group.product(product.before);
    product.sums = std::move(before.sums);
    before.superseded = true;
  }
  multiply(here, block, product);
  product.done = true;
}

/// Waits until all threads have issued the products before number `end`, and performs them in
/// order.
void carry_out_before(Worker& here, Warpgroup& group, std::int64_t end, Place place) {
  Thread& self = here.current();
  for (std::int64_t number = group.members[linear_index(self) % warpgroup_threads].collected;
       number < end; ++number) {
    while (group.product(number).issued != warpgroup_threads) {
      self.operation = "wgmma_wait";
      self.place = place;
      here.yield(YieldReason::in_vain);
    }
    carry_out(here, *self.block, group, number);
  }
}

void issue(MatrixProduct mine, SumPlaces sums, const std::uint32_t* a) {
  Worker& here = running_worker("wgmma");
  Thread& self = here.current();
  Warpgroup& group = warpgroup(here, "wgmma", mine.place);
  const std::size_t me = linear_index(self) % warpgroup_threads;
  Warpgroup::Member& member = group.members[me];
  const auto words = static_cast<std::size_t>(mine.shape.n) / 2;
  bool mixed = false;
  mine.before = product_before(group, member, sums, words, mixed);
  const char* wrong = mixed ? "wgmma has some of the sums of one that is in flight: wait for that"
                            : missing_fence(member, sums, words);
  if (wrong != nullptr) {
    sums = {};  // freed explicitly: abandon() does not unwind
    here.fail(wrong, mine.place);
  }
  MatrixProduct& product = find_product(here, group, mine, member.issued);
  ++member.issued;
  if (product.before >= 0) {
    group.product(product.before).continued = true;
  } else {
    product.sums.resize(warpgroup_threads * words);
    sums.read(product.sums.data() + me * words, words);
  }
  member.sums.push_back(std::move(sums));
  if (a != nullptr) {
    product.a.resize(warpgroup_threads * std::size_t{4});
    std::memcpy(product.a.data() + 4 * me, a, 4 * sizeof(std::uint32_t));
  }
  note_operands(here, product);
  if (me == 0 && here.recorder() != nullptr) {
    here.recorder()->count_product(product.place, operations_of(product.shape));
  }
  memory_changed = true;
  if (++product.issued != warpgroup_threads || here.order() != ThreadOrder::Kind::random ||
      next_random(self.block->random) % 2 == 0) {
    return;
  }
  for (std::int64_t number = group.first; number < member.issued; ++number) {
    carry_out(here, *self.block, group, number);
  }
}

}  // namespace

void SumPlaces::read(std::uint32_t* to, std::size_t words) const {
  for (std::size_t i = 0; i < words; ++i) std::memcpy(to + i, at(i), sizeof(*to));
}
void SumPlaces::write(const std::uint32_t* from, std::size_t words) const {
  for (std::size_t i = 0; i < words; ++i) std::memcpy(at(i), from + i, sizeof(*from));
}
bool SumPlaces::overlaps(std::size_t words, const SumPlaces& other, std::size_t its_words) const {
  if (each.empty() && other.each.empty()) {
    return first < other.first + its_words && other.first < first + words;
  }
  for (std::size_t i = 0; i < words; ++i) {
    for (std::size_t j = 0; j < its_words; ++j) {
      if (at(i) == other.at(j)) return true;
    }
  }
  return false;
}

void wgmma_fence(Place place) {
  Worker& here = running_worker("wgmma_fence");
  Warpgroup::Member& member = warpgroup(here, "wgmma_fence", place)
                                  .members[linear_index(here.current()) % warpgroup_threads];
  member.fenced = true;
  member.written.clear();
}

void wgmma(const WgmmaShape& shape, void* sums, const std::uint32_t* a, std::uint64_t a_matrix,
           std::uint64_t b_matrix, bool accumulate, Place place) {
  issue({shape, a != nullptr, a_matrix, b_matrix, accumulate, place},
        {static_cast<std::uint32_t*>(sums), {}}, a);
}

void wgmma_scattered(const WgmmaShape& shape, void* const* sums, const std::uint32_t* a,
                     std::uint64_t a_matrix, std::uint64_t b_matrix, bool accumulate, Place place) {
  SumPlaces places;
  for (int i = 0; i < shape.n / 2; ++i) {
    places.each.push_back(static_cast<std::uint32_t*>(sums[i]));
  }
  places.first = places.each.front();
  issue({shape, a != nullptr, a_matrix, b_matrix, accumulate, place}, std::move(places), a);
}

void wgmma_commit(Place place) {
  Worker& here = running_worker("wgmma_commit");
  Warpgroup::Member& member = warpgroup(here, "wgmma_commit", place)
                                  .members[linear_index(here.current()) % warpgroup_threads];
  member.groups.push_back(member.issued);
}

void wgmma_wait(int pending, Place place) {
  Worker& here = running_worker("wgmma_wait");
  Warpgroup& group = warpgroup(here, "wgmma_wait", place);
  const std::size_t me = linear_index(here.current()) % warpgroup_threads;
  Warpgroup::Member& member = group.members[me];
  const auto keep = static_cast<std::size_t>(pending);
  if (member.groups.size() <= keep) return;
  const std::size_t over = member.groups.size() - keep;
  const std::int64_t end = member.groups[over - 1];
  carry_out_before(here, group, end, place);
  for (; member.collected < end; ++member.collected) {
    MatrixProduct& product = group.product(member.collected);
    const SumPlaces sums = std::move(member.sums.front());
    member.sums.erase(member.sums.begin());
    note_operands(here, product);
    ++product.collected;
    if (product.superseded) continue;
    const auto words = static_cast<std::size_t>(product.shape.n) / 2;
    sums.write(product.sums.data() + me * words, words);
    remember(member, sums, words);
  }
  member.groups.erase(member.groups.begin(),
                      member.groups.begin() + static_cast<std::ptrdiff_t>(over));
  // A product is kept until a later product that accumulates onto its sums has been performed, even
  // if all threads have waited for the earlier one.
  const auto is_over = [](const MatrixProduct& product) {
    return product.collected == warpgroup_threads && (!product.continued || product.superseded);
  };
  while (!group.products.empty() && is_over(group.products.front())) {
    group.products.pop_front();
    ++group.first;
  }
}

void Worker::finish_products(const Thread& thread) {
  const std::size_t index = linear_index(thread) / warpgroup_threads;
  if (index >= thread.block->warpgroups.size()) return;
  const auto& group = thread.block->warpgroups[index];
  if (group == nullptr) return;
  const Warpgroup::Member& member = group->members[linear_index(thread) % warpgroup_threads];
  if (member.issued == member.collected) return;
  fail("a thread exits without waiting for its wgmma (wgmma_commit, wgmma_wait)", Place{});
}

}  // namespace rung::simt
