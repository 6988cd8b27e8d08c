// SPDX-License-Identifier: Apache-2.0
// rung run: an operator on files that NumPy wrote. Each operator describes its arguments, and this
// command makes options of them: it knows none by name.
#include <fmt/format.h>

#include <map>
#include <memory>

#include "rung/core/npy.hpp"
#include "rung/workbench/command.hpp"
#include "rung/workbench/selection.hpp"

namespace rung::workbench {
namespace {

using Kind = ArgumentSpec::Kind;

/// What was given on the command line for one operator.
struct Options {
  std::string output;
  std::string backend = "cpu";
  std::string rung;
  int threads = 0;
  // By name of the argument; addresses of map elements do not move.
  std::map<std::string, std::string> files;
  std::map<std::string, double> numbers;
  std::map<std::string, std::string> texts;
  std::map<std::string, bool> flags;
  std::map<std::string, Option> parsed;
};

std::vector<std::string> choices_of(const ArgumentSpec& spec) {
  std::vector<std::string> words;
  std::string text(spec.choices);
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos;) text[at] = ',';
  return split_commas(text);
}

void add_argument(Parser app, Options& options, const ArgumentSpec& spec) {
  const std::string name(spec.name);
  const std::string flag = spec.positional ? name : "--" + name;
  const std::string help(spec.help);
  const auto add = [&] {
    switch (spec.kind) {
      case Kind::tensor:
        return app.add_option(flag, options.files[name], help)
            .type_name("FILE")
            .required(spec.positional);
      case Kind::number:
        return app.add_option(flag, options.numbers[name], help).type_name("NUMBER");
      case Kind::flag:
        return app.add_flag(flag, options.flags[name], help);
      case Kind::text:
        break;
    }
    const Option word = app.add_option(flag, options.texts[name], help).type_name("WORD");
    return spec.choices.empty() ? word : word.one_of(choices_of(spec));
  };
  options.parsed.emplace(name, add());
}

/// The file's elements where the context computes.
Tensor load(const std::string& path, const Context& context) {
  Tensor host = read_npy(path);
  if (context.backend() == Backend::cpu) return host;
  Tensor there(host.dtype(), host.shape(), context.device());
  copy(host, there);
  return there;
}

int run(const AnyOperator& op, const Options& options) {
  const Backend backend = parse_backend(options.backend);
  if (const Availability here = available(backend); !here) {
    throw Error(ErrorCode::not_available, fmt::format("backend {}: {}", options.backend, here.why));
  }
  if (!options.rung.empty()) expect_rung(op, options.rung, backend);
  Context context = Context::on(backend, options.threads);
  Invocation invocation;
  for (const ArgumentSpec& spec : op.arguments()) {
    const std::string name(spec.name);
    if (!options.parsed.at(name).given()) continue;
    switch (spec.kind) {
      case Kind::tensor:
        invocation.tensors[name] = load(options.files.at(name), context);
        break;
      case Kind::number:
        invocation.numbers[name] = options.numbers.at(name);
        break;
      case Kind::flag:
        invocation.texts[name] = "";
        break;
      case Kind::text:
        invocation.texts[name] = options.texts.at(name);
        break;
    }
  }
  const bool by_choice = options.rung.empty() || options.rung == public_call;
  op.invoke(context, invocation, by_choice ? best : Pick{options.rung, true});
  context.synchronize();
  write_npy(options.output, invocation.result);
  fmt::print("{}: {} {}\n", options.output, to_string(invocation.result.dtype()),
             to_string(invocation.result.shape()));
  return exit_good;
}

CommandSpec::Action setup(Parser app) {
  auto actions = std::make_shared<std::vector<std::pair<Parser, CommandSpec::Action>>>();
  for (const AnyOperator* op : operators()) {
    const Parser one = app.add_command(std::string(op->name()), std::string(op->summary()));
    auto options = std::make_shared<Options>();
    std::string example = fmt::format("  rung run {}", op->name());
    for (const ArgumentSpec& spec : op->arguments()) {
      add_argument(one, *options, spec);
      if (spec.positional) example += fmt::format(" {}.npy", spec.name);
    }
    one.add_option("-o,--output", options->output, "the .npy file to write").required();
    one.add_option("--backend", options->backend, "cpu, cuda or simt; default cpu");
    one.add_option("--threads", options->threads, "CPU threads; default: every core")
        .between(1, 4096);
    one.add_option("--rung", options->rung, "this rung; default: the library's choice");
    one.footer(fmt::format(
        "Files are NumPy's: numpy.save writes them, numpy.load reads the result. The output is\n"
        "written whole or not at all.\n\n{} -o out.npy",
        example));
    actions->emplace_back(one, [op, options] { return run(*op, *options); });
  }
  app.footer("`rung run OPERATOR --help` tells an operator's arguments.");
  return [actions] {
    for (const auto& [one, action] : *actions) {
      if (one.parsed()) return action();
    }
    return static_cast<int>(exit_usage);
  };
}

const Command self{
    {.name = "run", .order = 50, .summary = "apply an operator to .npy files", .setup = setup}};

}  // namespace
}  // namespace rung::workbench
