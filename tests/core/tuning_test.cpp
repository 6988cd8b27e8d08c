// SPDX-License-Identifier: Apache-2.0
// Measured selection: when it measures, that the caller's tensors keep their values, that results
// are cached across contexts and processes, and the handling of damaged files.
#include "rung/core/tuning.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "expect_error.hpp"
#include "fake_device.hpp"
#include "rung/core/version.hpp"
#include "rung/harness/any_operator.hpp"

namespace rung {
namespace {

using test::expect_error;
using test::fake_device;
namespace fs = std::filesystem;

std::map<std::string, int> runs;  // number of runs of each rung
std::mutex runs_guard;
bool nested = false;  // rungs call an operator themselves

void call_within();

/// Operator y = 3 x + beta y. The rung with the best estimate is the slow one.
struct Triple {
  static constexpr std::string_view name = "triple";
  template <class In, class Out>
  struct CallOf {
    In x = {};
    Out y = {};
    double beta = 0;
    bool operator==(const CallOf&) const = default;
  };
  using Call = CallOf<ConstTensorRef, TensorRef>;
  struct Args : Call {};
  static constexpr void operands(auto& call, auto&& visit) {
    visit(in(call.x, "x"), out(call.y, "y").may_be("x"));
  }
  static RungList<Triple>& rungs() {
    static constinit RungList<Triple> list;
    return list;
  }
  static void bind(const Args&) {}
  static Cost cost(const Args& args) { return {8.0 * static_cast<double>(args.x.size()), 0}; }
  static Problem describe(const Call& call) {
    Problem problem;
    problem.dtype = call.x.dtype;
    problem.extents.assign(call.x.shape.at, call.x.shape.at + call.x.shape.rank);
    if (call.beta != 0) problem.options.push_back({"beta", std::to_string(call.beta)});
    return problem;
  }
};

void triple(const char* name, const Triple::Args& args, std::chrono::microseconds pause) {
  {
    const std::lock_guard lock(runs_guard);
    ++runs[name];
  }
  if (nested && args.x.shape[0] == 8) call_within();
  if (pause.count() > 0) std::this_thread::sleep_for(pause);
  for (std::int64_t i = 0; i < args.x.shape[0]; ++i) {
    auto& y = static_cast<float*>(args.y.data)[i * args.y.strides[0]];
    const float x = static_cast<const float*>(args.x.data)[i * args.x.strides[0]];
    y = 3 * x + (args.beta != 0 ? static_cast<float>(args.beta) * y : 0.0F);
  }
}

const Rung<Triple> guessed{
    {.name = "guessed",
     .step = 10,
     .work = [](const Triple::Args&, const Context&) { return Work{.bytes = 1.0e9}; },
     .run = [](const Triple::Args& args,
               Context&) { triple("guessed", args, std::chrono::microseconds(500)); }}};
const Rung<Triple> fastest{
    {.name = "fastest",
     .step = 20,
     .supports =
         [](const Triple::Args& args, const Context&) {
           return args.x.shape[0] == 77 ? unsupported("not 77") : supported;
         },
     .work = [](const Triple::Args&, const Context&) { return Work{.bytes = 1.9e9}; },
     .run = [](const Triple::Args& args,
               Context&) { triple("fastest", args, std::chrono::microseconds(0)); }}};
const Rung<Triple> hopeless{
    {.name = "hopeless",
     .step = 30,
     .work = [](const Triple::Args&, const Context&) { return Work{.bytes = 2.1e9}; },
     .run = [](const Triple::Args& args,
               Context&) { triple("hopeless", args, std::chrono::microseconds(0)); }}};
const Rung<Triple> teaching{{.name = "teaching",
                             .step = 5,
                             .teaching = true,
                             .run = [](const Triple::Args& args, Context&) {
                               triple("teaching", args, std::chrono::microseconds(0));
                             }}};
const Rung<Triple> on_gpu{{.name = "on_gpu",
                           .step = 10,
                           .backend = Backend::cuda,
                           .run = [](const Triple::Args&, Context&) { ++runs["on_gpu"]; }}};

void call_within() {
  Context inner = Context::cpu(1);
  inner.set_tuning(Tuning::first_call);
  std::vector<float> x(4), y(4);
  call<Triple>(inner, {.x = ConstTensorRef(x.data(), {4}), .y = TensorRef(y.data(), {4})});
}

class Tuned : public testing::Test {
 protected:
  Tuned() {
    std::string made = (fs::temp_directory_path() / "rung-tuning-XXXXXX").string();
    folder = mkdtemp(made.data());
    file = folder / "tuning.jsonl";
    use(file);
    runs.clear();
  }
  ~Tuned() override {
    unsetenv("RUNG_TUNE_FILE");
    unsetenv("RUNG_TUNE");
    unsetenv("RUNG_LOG");
    fs::permissions(folder, fs::perms::owner_all);
    fs::remove_all(folder);
  }
  Tuned(const Tuned&) = delete;
  Tuned& operator=(const Tuned&) = delete;

  static void use(const fs::path& path) { setenv("RUNG_TUNE_FILE", path.c_str(), 1); }
  static Context context(Tuning tuning, int threads = 1) {
    Context made = Context::cpu(threads);
    made.set_tuning(tuning);
    return made;
  }
  /// Calls it on `size` elements; returns the first element of the result for x = 1 and y = 10.
  static float call_on(Context& context, std::int64_t size, double beta = 0) {
    std::vector<float> x(static_cast<std::size_t>(size), 1.0F);
    std::vector<float> y(static_cast<std::size_t>(size), 10.0F);
    call<Triple>(
        context,
        {.x = ConstTensorRef(x.data(), {size}), .y = TensorRef(y.data(), {size}), .beta = beta});
    return y.front();
  }
  std::vector<std::string> lines() const {
    std::vector<std::string> all;
    std::ifstream stream(file);
    for (std::string line; std::getline(stream, line);) all.push_back(line);
    return all;
  }
  void write(const std::string& text) const { std::ofstream(file, std::ios::binary) << text; }

  fs::path folder, file;
};

TEST_F(Tuned, OffChoosesByEstimateAndWritesNothing) {
  Context off = context(Tuning::off);
  EXPECT_EQ(call_on(off, 8), 3);
  EXPECT_EQ(runs, (std::map<std::string, int>{{"guessed", 1}}));
  EXPECT_FALSE(fs::exists(file));
}

TEST_F(Tuned, MeasuresCandidatesWithinTwiceTheBestEstimateAndRemembersTheFastest) {
  Context first = context(Tuning::first_call);
  EXPECT_EQ(call_on(first, 8), 3);
  EXPECT_GT(runs["guessed"], 0);
  EXPECT_GT(runs["fastest"], 0);
  EXPECT_EQ(runs["hopeless"], 0);
  EXPECT_EQ(runs["teaching"], 0);
  ASSERT_EQ(lines().size(), 1);
  const nlohmann::json line = nlohmann::json::parse(lines().front());
  EXPECT_EQ(line["operator"], "triple");
  EXPECT_EQ(line["problem"], "f32 8");
  EXPECT_EQ(line["kernel"], "fastest");
  EXPECT_EQ(line["rung"], version());
  EXPECT_EQ(line["seconds"].size(), 2);

  // Neither this context nor another measures it again; both run the rung that was found.
  runs.clear();
  call_on(first, 8);
  Context second = context(Tuning::first_call);
  call_on(second, 8);
  Context third = context(Tuning::remembered);
  call_on(third, 8);
  EXPECT_EQ(runs, (std::map<std::string, int>{{"fastest", 3}}));
}

TEST_F(Tuned, RememberedMeasuresNothing) {
  Context remembered = context(Tuning::remembered);
  EXPECT_EQ(call_on(remembered, 8), 3);
  EXPECT_EQ(runs, (std::map<std::string, int>{{"guessed", 1}}));
  EXPECT_FALSE(fs::exists(file));
}

TEST_F(Tuned, LeavesTheCallersTensorsAlone) {
  // Each measured run would have added to y, or multiplied x by three if y is x.
  Context first = context(Tuning::first_call);
  EXPECT_EQ(call_on(first, 8, 2), 3 + 2 * 10);
  std::vector<float> x{1, 1, 1, 1, 1};
  const TensorRef in_place(x.data(), {5});
  call<Triple>(first, {.x = in_place, .y = in_place});
  EXPECT_EQ(x, (std::vector<float>{3, 3, 3, 3, 3}));
  EXPECT_GT(runs["fastest"], 2);
}

TEST_F(Tuned, KeepsTheLayoutOfWhatIsWritten) {
  // A reversed, strided result: copies need room before their data pointer.
  std::vector<float> x{1, 2, 3};
  std::vector<float> y(7, -1.0F);
  Context first = context(Tuning::first_call);
  call<Triple>(
      first, {.x = ConstTensorRef(x.data(), {3}), .y = TensorRef(y.data() + 6, {3}, Extents{-3})});
  EXPECT_EQ(y, (std::vector<float>{9, -1, -1, 6, -1, -1, 3}));
}

TEST_F(Tuned, OtherLayoutsOptionsAndThreadsAreOtherCalls) {
  Context first = context(Tuning::first_call);
  call_on(first, 8);
  call_on(first, 9);
  call_on(first, 8, 2);
  std::vector<float> x(16, 1.0F), y(8);
  call<Triple>(first,
               {.x = ConstTensorRef(x.data(), {8}, Extents{2}), .y = TensorRef(y.data(), {8})});
  EXPECT_EQ(lines().size(), 4);
  // Repeatable selections do not depend on the number of threads; fastest selections do.
  Context two = context(Tuning::first_call, 2);
  call_on(two, 8);
  EXPECT_EQ(lines().size(), 4);
  two.set_choice(Choice::fastest);
  call_on(two, 8);
  ASSERT_EQ(lines().size(), 5);
  EXPECT_EQ(nlohmann::json::parse(lines().back())["threads"], 2);
}

TEST_F(Tuned, ANamedRungAndAnEmptyResultAreNotTuned) {
  Context first = context(Tuning::first_call);
  std::vector<float> x(8), y(8);
  call<Triple>(first, {.x = ConstTensorRef(x.data(), {8}), .y = TensorRef(y.data(), {8})},
               Pick{.rung = "guessed"});
  call_on(first, 0 + 1);
  call<Triple>(first, {.x = ConstTensorRef(x.data(), {0}), .y = TensorRef(y.data(), {0})});
  EXPECT_EQ(lines().size(), 1);
}

TEST_F(Tuned, ADamagedFileChoosesNothingWrong) {
  Context first = context(Tuning::first_call);
  call_on(first, 8);
  const std::string good = lines().front();
  const auto with_kernel = [&](const std::string& kernel) {
    nlohmann::json line = nlohmann::json::parse(good);
    line["kernel"] = kernel;
    return line.dump() + '\n';
  };
  const std::string cases[] = {
      "",
      "\n\n\n",
      std::string(100, '\0'),
      "no JSON\n",
      "[1, 2]\n42\nnull\n\"text\"\n",
      good.substr(0, good.size() / 2),
      good.substr(0, good.size() / 2) + "\n",
      R"({"operator": 3, "kernel": []})"
      "\n",
      R"({"operator": "triple", "kernel": "fastest", "threads": "many"})"
      "\n",
      with_kernel("teaching"),
      with_kernel("on_gpu"),
      with_kernel("no_such_kernel"),
      with_kernel(std::string(2 << 20, 'x')),
      std::string(3 << 20, '{'),
      "\xff\xfe\n",
  };
  int number = 0;
  for (const std::string& text : cases) {
    SCOPED_TRACE(text.substr(0, 60));
    use(file = folder / ("damaged" + std::to_string(number++)));
    write(text);
    runs.clear();
    Context remembered = context(Tuning::remembered);
    EXPECT_EQ(call_on(remembered, 8), 3);
    EXPECT_EQ(runs, (std::map<std::string, int>{{"guessed", 1}}));
    // New measurements are appended after the damaged part.
    Context measuring = context(Tuning::first_call);
    EXPECT_EQ(call_on(measuring, 8), 3);
    EXPECT_EQ(nlohmann::json::parse(lines().back())["kernel"], "fastest");
  }
}

TEST_F(Tuned, AForeignEntryMayNotChooseWhatDoesNotTakeTheCall) {
  // With 77 elements "fastest" rejects the call, whatever the file says.
  Context first = context(Tuning::first_call);
  call_on(first, 77);
  nlohmann::json line = nlohmann::json::parse(lines().front());
  EXPECT_EQ(line["kernel"], "guessed");
  line["kernel"] = "fastest";
  write(line.dump() + '\n');
  use(file);
  runs.clear();
  fs::rename(file, folder / "other");
  use(folder / "other");
  Context remembered = context(Tuning::remembered);
  EXPECT_EQ(call_on(remembered, 77), 3);
  EXPECT_EQ(runs, (std::map<std::string, int>{{"guessed", 1}}));
}

TEST_F(Tuned, AFileThatCannotBeWrittenIsNoErrorOfTheCall) {
  for (const fs::path& path : {folder, fs::path("/proc/self/no/tuning"), fs::path("/dev/null")}) {
    SCOPED_TRACE(path.string());
    use(path);
    runs.clear();
    Context first = context(Tuning::first_call);
    EXPECT_EQ(call_on(first, 8), 3);
    EXPECT_FALSE(detail::tuning_file_trouble().empty());
    // This process still remembers the result.
    runs.clear();
    Context second = context(Tuning::first_call);
    call_on(second, 8);
    EXPECT_EQ(runs, (std::map<std::string, int>{{"fastest", 1}}));
  }
}

TEST_F(Tuned, ProcessesShareAFile) {
  constexpr int processes = 4;
  constexpr int calls = 20;
  std::vector<pid_t> children;
  for (int i = 0; i < processes; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      Context first = context(Tuning::first_call);
      for (int call = 0; call < calls; ++call) call_on(first, 100 + call * processes + i);
      _exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  std::set<std::string> problems;
  for (const std::string& line : lines()) {
    problems.insert(nlohmann::json::parse(line)["problem"].get<std::string>());
  }
  EXPECT_EQ(problems.size(), processes * calls);
  // Results that other processes wrote are used here, without measuring.
  runs.clear();
  Context remembered = context(Tuning::remembered);
  call_on(remembered, 100);
  EXPECT_EQ(runs, (std::map<std::string, int>{{"fastest", 1}}));
}

TEST_F(Tuned, NothingIsMeasuredWhileAGraphIsCaptured) {
  const Tensor x(DType::f32, {8}, test::gpu), y(DType::f32, {8}, test::gpu);
  Context cuda = Context::cuda();
  cuda.set_tuning(Tuning::first_call);
  fake_device().capturing = true;
  const int before = fake_device().synchronizations;
  call<Triple>(cuda, {.x = x, .y = y});
  EXPECT_EQ(runs["on_gpu"], 1);
  EXPECT_EQ(fake_device().synchronizations, before);
  fake_device().capturing = false;
  Context later = Context::cuda();
  later.set_tuning(Tuning::first_call);
  call<Triple>(later, {.x = x, .y = y});
  EXPECT_GT(runs["on_gpu"], 3);
  ASSERT_EQ(lines().size(), 1);
  EXPECT_EQ(nlohmann::json::parse(lines().front())["device"], "cuda: fake 0");
}

TEST_F(Tuned, GivesBackCopiesWhereMemoryIsShort) {
  // There is no memory for the second copy: the first is released, and the call runs as estimated.
  const std::int64_t most = static_cast<std::int64_t>(test::fake::memory / sizeof(float) / 4);
  const Tensor x(DType::f32, {8}, test::gpu);
  Context cuda = Context::cuda();
  cuda.set_tuning(Tuning::first_call);
  const TensorRef large(x.ref().data, DType::f32, {most + 1}, test::gpu);
  const std::size_t before = fake_device().blocks.size();
  call<Triple>(cuda, {.x = large, .y = large});
  EXPECT_EQ(fake_device().blocks.size(), before);
  EXPECT_EQ(runs["on_gpu"], 1);
  EXPECT_FALSE(fs::exists(file));
}

TEST_F(Tuned, KeepsWhatAGraphMayUseWhereTheTuningChanges) {
  const Tensor x(DType::f32, {8}, test::gpu), y(DType::f32, {8}, test::gpu);
  Context cuda = Context::cuda();
  static_cast<void>(cuda.workspace(1000));
  struct Table {
    Tensor words{DType::i32, {16}, test::gpu};
  };
  static_cast<void>(cuda.memo<Table>());
  const std::size_t before = fake_device().blocks.size();
  cuda.set_tuning(Tuning::first_call);
  call<Triple>(cuda, {.x = x, .y = y});
  cuda.set_tuning(Tuning::off);
  EXPECT_EQ(fake_device().blocks.size(), before);
}

TEST_F(Tuned, ThreadsThatMakeTheSameCallChooseAlike) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      Context first = context(Tuning::first_call);
      call_on(first, 88);
    });
  }
  for (std::thread& one : threads) one.join();
  EXPECT_EQ(lines().size(), 1);
}

TEST_F(Tuned, ALockedFileIsNotWaitedFor) {
  write("");
  const int held = open(file.c_str(), O_RDWR);
  ASSERT_EQ(flock(held, LOCK_EX), 0);
  Context first = context(Tuning::first_call);
  EXPECT_EQ(call_on(first, 8), 3);
  EXPECT_NE(detail::tuning_file_trouble().find("cannot lock"), std::string::npos);
  close(held);
  EXPECT_EQ(lines().size(), 0);
}

TEST_F(Tuned, ACallWithinAMeasuredOneIsNotMeasured) {
  nested = true;
  Context first = context(Tuning::first_call);
  call_on(first, 8);
  nested = false;
  // The inner call is measured after the outer one: once, by the call itself.
  ASSERT_EQ(lines().size(), 2);
  EXPECT_EQ(nlohmann::json::parse(lines().front())["problem"], "f32 8");
}

TEST_F(Tuned, TheEnvironmentSaysWhatAContextBeginsWith) {
  setenv("RUNG_TUNE", "first_call", 1);
  EXPECT_EQ(Context::cpu(1).tuning(), Tuning::first_call);
  setenv("RUNG_TUNE", "always", 1);
  expect_error(ErrorCode::invalid_argument, {"RUNG_TUNE is 'always'; accepted: off"},
               [] { static_cast<void>(Context::cpu(1)); });
  setenv("RUNG_TUNE", "", 1);
  EXPECT_EQ(Context::cpu(1).tuning(), Tuning::off);
  setenv("RUNG_LOG", "all", 1);
  expect_error(ErrorCode::invalid_argument, {"RUNG_LOG is 'all'; accepted: calls"},
               [] { static_cast<void>(Context::cpu(1)); });
  unsetenv("RUNG_LOG");
  Context one = Context::cpu(1);
  expect_error(ErrorCode::invalid_argument, {"tuning is 9; accepted: off, remembered, first_call"},
               [&] { one.set_tuning(Tuning{9}); });
}

TEST_F(Tuned, TheLogHasEachCallOnce) {
  setenv("RUNG_LOG", "calls", 1);
  Context logging = Context::cpu(1);
  testing::internal::CaptureStderr();
  call_on(logging, 31);
  call_on(logging, 31);
  call_on(logging, 32, 2);
  call_on(logging, 31);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "rung: call cpu triple f32 31\nrung: call cpu triple f32 32,beta=2.000000\n");
  EXPECT_EQ(runs, (std::map<std::string, int>{{"guessed", 4}}));
}

TEST_F(Tuned, AMovedContextKeepsItsTuning) {
  Context first = context(Tuning::remembered);
  const Context second = std::move(first);
  EXPECT_EQ(second.tuning(), Tuning::remembered);
}

}  // namespace
}  // namespace rung
