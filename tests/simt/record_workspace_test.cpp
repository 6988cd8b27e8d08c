// SPDX-License-Identifier: Apache-2.0
// Workspaces: accesses outside of the requested bytes, and reads of bytes that no kernel has
// written.
#include "tests/simt/record_fixture.hpp"

namespace rung {
namespace {

constexpr std::size_t elements = 1001;  // no multiple of a page
constexpr std::size_t bytes = elements * sizeof(float);

constexpr int line_of_store = __LINE__ + 3;
/// Stores count elements from index first on.
__global__ void store_some(float* to, int first, int count) {
  for (int i = 0; i < count; ++i) to[first + i] = 1;
}

constexpr int line_of_load = __LINE__ + 3;
/// Loads an element and discards it.
__global__ void load_one(const float* from, int index, float* to) {
  const float value = from[index];
  if (value == 12345) *to = value;
}

/// Records a call that stores elements of its workspace. The context has had a larger workspace.
Report store_to_workspace(int first, int count) {
  return recorded([&] {
    Context context = Context::simt();
    context.workspace(1 << 20);
    auto* const workspace = static_cast<float*>(context.workspace(bytes));
    launch(context, {.grid = 1, .block = 1}, store_some, workspace, first, count);
  });
}

/// Records a call that stores all elements of its workspace but the last, then loads one.
Report load_from_workspace(int index) {
  return recorded([&] {
    Context context = Context::simt();
    auto* const workspace = static_cast<float*>(context.workspace(bytes));
    launch(context, {.grid = 1, .block = 1}, store_some, workspace, 0, int{elements} - 1);
    launch(context, {.grid = 1, .block = 1}, load_one, workspace, index, workspace);
  });
}

void expect_text(const Report& report, const std::string& text) {
  EXPECT_NE(all_text(report).find(text), std::string::npos) << all_text(report);
}

TEST(Workspace, IsAligned) {
  Context context = Context::simt();
  for (const std::size_t size : {std::size_t{1}, bytes, std::size_t{1} << 20}) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(context.workspace(size)) % 4096, 0u);
  }
}

TEST(Workspace, ItsElementsMayBeWritten) { expect_clean(store_to_workspace(0, elements)); }

TEST(Workspace, OneElementBehindIsOutOfBounds) {
  const Report report = store_to_workspace(0, elements + 1);
  expect_finding(report, Kind::out_of_bounds, Space::global, line_of_store);
  expect_text(report, "a write of 4 bytes behind 4004 bytes of the workspace, at byte 4004");
  expect_text(report, "store_some");
}

TEST(Workspace, OneElementBeforeIsOutOfBounds) {
  const Report report = store_to_workspace(-1, 1);
  expect_finding(report, Kind::out_of_bounds, Space::global, line_of_store);
  expect_text(report, "a write of 4 bytes 4 bytes before 4004 bytes of the workspace");
}

TEST(Workspace, LoadsMayNotLeaveIt) {
  expect_clean(load_from_workspace(0));
  const Report report = load_from_workspace(elements);
  expect_finding(report, Kind::out_of_bounds, Space::global, line_of_load);
}

TEST(Workspace, UnwrittenBytesMayNotBeLoaded) {
  expect_clean(load_from_workspace(int{elements} - 2));
  const Report report = load_from_workspace(int{elements} - 1);
  expect_finding(report, Kind::uninitialized, Space::global, line_of_load);
  expect_text(report, "byte 4000 of 4004 bytes of the workspace");
}

TEST(Workspace, IsUnwrittenInEachCall) {
  const Report report = recorded([] {
    Context context = Context::simt();
    auto* workspace = static_cast<float*>(context.workspace(bytes));
    launch(context, {.grid = 1, .block = 1}, store_some, workspace, 0, int{elements});
    workspace = static_cast<float*>(context.workspace(bytes));
    launch(context, {.grid = 1, .block = 1}, load_one, workspace, 0, workspace);
  });
  expect_finding(report, Kind::uninitialized, Space::global, line_of_load);
}

TEST(Workspace, EndsWithTheNextRequest) {
  const Report report = recorded([] {
    Context context = Context::simt();
    auto* const first = static_cast<float*>(context.workspace(bytes));
    context.workspace(bytes);
    launch(context, {.grid = 1, .block = 1}, store_some, first, 0, 1);
  });
  expect_finding(report, Kind::use_after_free, Space::global, line_of_store);
}

}  // namespace
}  // namespace rung
