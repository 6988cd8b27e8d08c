// SPDX-License-Identifier: Apache-2.0
// rung crossover: the problem size from which a GPU is faster than the CPU, with or without copies.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "rung/core/error.hpp"
#include "rung/workbench/bench.hpp"
#include "rung/workbench/command.hpp"
#include "rung/workbench/selection.hpp"
#include "rung/workbench/table.hpp"

namespace rung::workbench {
namespace {

struct Options {
  std::string op;
  std::vector<std::string> problem;
  std::string backend = "cuda";
  bool json = false;
};

/// Median seconds of the public call on one problem.
struct CrossoverRow {
  std::string problem;
  double cpu = 0;
  double gpu = 0;
  double with_copies = 0;  // of inputs to the GPU and of results back
};

/// Copies as many bytes as a call reads and writes, from and to pageable host memory.
class Copies {
 public:
  Copies(const Instance& instance, Device device)
      : device_(device), api_(*device_api(device.backend)) {
    const double bytes = instance.cost().bytes;
    written_ = static_cast<std::size_t>(bytes * written_share(instance));
    read_ = static_cast<std::size_t>(bytes) - written_;
    host_.assign(std::max({read_, written_, std::size_t{1}}), 1);
    memory_ = api_.allocate(device.index, host_.size());
  }
  ~Copies() { api_.release(device_.index, memory_); }
  Copies(const Copies&) = delete;
  Copies& operator=(const Copies&) = delete;

  void to_device() { api_.copy(device_.index, memory_, host_.data(), read_); }
  void from_device() { api_.copy(device_.index, host_.data(), memory_, written_); }

 private:
  Device device_;
  const DeviceApi& api_;
  std::size_t read_ = 0, written_ = 0;
  std::vector<char> host_;
  void* memory_ = nullptr;
};

CrossoverRow measure(const AnyOperator& op, const Problem& problem, Context& cpu, Context& gpu) {
  const auto here = op.make(problem, {}, 1, cpu.device());
  const auto there = op.make(problem, {}, 1, gpu.device());
  Copies copies(*here, gpu.device());
  const std::vector<bench::Contender> contenders = {contender({here.get()}, nullptr, cpu),
                                                    contender({there.get()}, nullptr, gpu),
                                                    {[&](long repeats) {
                                                      for (long i = 0; i < repeats; ++i) {
                                                        copies.to_device();
                                                        there->call(gpu);
                                                        gpu.synchronize();
                                                        copies.from_device();
                                                      }
                                                    }}};
  const std::vector<bench::Samples> samples = bench::alternate(contenders, {.rounds = 7});
  return {problem.to_string(), samples[0].median(), samples[1].median(), samples[2].median()};
}

/// Returns problems of growing size; if the operator has none here, the CPU problems of `rung
/// bench`.
std::vector<Problem> usual_problems(const AnyOperator& op) {
  std::vector<Problem> problems;
  if (op.name() == "elementwise") {
    for (long n = 1L << 10; n <= 1L << 26; n *= 4) {
      problems.push_back(Problem::parse(fmt::format("f32 {},add", n)));
    }
  } else if (op.name() == "gemm") {
    for (int n = 32; n <= 4096; n *= 2) {
      problems.push_back(Problem::parse(fmt::format("f32 {}x{}x{}", n, n, n)));
    }
  } else {
    problems = op.bench_problems(Backend::cpu);
  }
  return problems;
}

std::string faster(const CrossoverRow& row, const std::string& gpu) {
  if (row.with_copies <= row.cpu) return gpu + ", with copies";
  return row.gpu <= row.cpu ? gpu + ", without" : "cpu";
}

std::string text_of(const std::vector<CrossoverRow>& rows, const std::string& gpu) {
  Table table({{"problem"}, {"cpu", true}, {gpu, true}, {"with copies", true}, {"faster"}});
  for (const CrossoverRow& row : rows) {
    table.add({row.problem, format_seconds(row.cpu), format_seconds(row.gpu),
               format_seconds(row.with_copies), faster(row, gpu)});
  }
  return table.text();
}

std::string json_of(const std::string& op, const Context& cpu, const Context& gpu,
                    const std::vector<CrossoverRow>& rows) {
  nlohmann::ordered_json all = {{"op", op},
                                {"threads", cpu.threads()},
                                {"device", gpu.info().name},
                                {"rows", nlohmann::ordered_json::array()}};
  for (const CrossoverRow& row : rows) {
    all["rows"].push_back({{"problem", row.problem},
                           {"cpu_seconds", row.cpu},
                           {"gpu_seconds", row.gpu},
                           {"with_copies_seconds", row.with_copies}});
  }
  return all.dump(2);
}

int run(const Options& options) {
  const AnyOperator& op = known_operator(options.op);
  const Backend backend = parse_backend(options.backend);
  if (in_host_memory(backend)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--backend: {} given; accepted: cuda, opencl", options.backend));
  }
  Context cpu = Context::cpu();
  Context gpu = Context::on(backend);
  std::vector<Problem> problems = parse_problems(options.problem);
  if (problems.empty()) problems = usual_problems(op);
  Progress progress(static_cast<int>(problems.size()));
  std::vector<CrossoverRow> rows;
  for (const Problem& problem : problems) {
    expect_work(op, problem, cpu, "time");
    progress.step(problem.to_string());
    rows.push_back(measure(op, problem, cpu, gpu));
  }
  if (options.json) {
    fmt::print("{}\n", json_of(options.op, cpu, gpu, rows));
    return exit_good;
  }
  fmt::print("{} with {} of the CPU, and on {}\n\n{}\n", options.op,
             count_of(cpu.threads(), "thread"), gpu.info().name, text_of(rows, options.backend));
  say("With copies: what is read is copied to the device before each call, and what is written "
      "back "
      "after it, from and to memory that is not pinned.");
  return exit_good;
}

CommandSpec::Action setup(Parser app) {
  auto options = std::make_shared<Options>();
  app.add_option("op", options->op, "the operator, as elementwise or gemm")
      .required()
      .completes(complete_operators);
  app.add_option("problem", options->problem,
                 "as in \"f32 1024x1024x1024\", several of them; default: growing sizes");
  app.add_option("--backend", options->backend, "cuda or opencl; default: cuda")
      .completes(complete_backends);
  app.add_flag("--json", options->json, "one object");
  app.purpose(
      "Times the public call on growing problems: on the CPU with all threads; on a GPU that has "
      "the data; and on a GPU to which what is read is copied and from which what is written "
      "comes back. A vector addition that is copied hardly ever pays; a product of matrices does "
      "from some size on.");
  app.example("rung crossover gemm", "from which size on is a GPU worth its copies?");
  app.example("rung crossover elementwise \"f32 1000000,add\"", "one problem");
  app.exit_codes({{exit_good, "good"},
                  {exit_usage, "the command line is wrong"},
                  {exit_not_here, "no such device is here, or it does not take the problem"}});
  return [options] { return run(*options); };
}

const Command self{{.name = "crossover",
                    .order = 41,
                    .summary = "from which size on a GPU is faster than the CPU",
                    .setup = setup}};

}  // namespace
}  // namespace rung::workbench
