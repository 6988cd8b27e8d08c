// SPDX-License-Identifier: Apache-2.0
// rung run: runs an operator on .npy files or pictures. Options are generated from each operator's
// description of its arguments; this file knows no operator by name.
#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <memory>
#include <system_error>

#include "rung/harness/run_examples.hpp"
#include "rung/workbench/command.hpp"
#include "rung/workbench/files.hpp"
#include "rung/workbench/selection.hpp"
#include "rung/workbench/tensor_files.hpp"

namespace rung::workbench {
namespace {

using Kind = ArgumentSpec::Kind;

/// Values of the command-line options of one operator.
struct Options {
  std::string output;
  std::string backend = "cpu";
  std::string rung;
  int threads = 0;
  int device = 0;
  bool force = false;
  // Keys are argument names; addresses of map elements are stable.
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

/// Returns the file's elements on the device of the context.
Tensor load(const std::string& path, const Context& context) {
  Tensor host = read_tensor_file(path);
  if (context.backend() == Backend::cpu) return host;
  Tensor there(host.dtype(), host.shape(), context.device());
  copy(host, there);
  return there;
}

/// Returns true if both paths resolve to the same file.
bool same_file(const std::string& a, const std::string& b) {
  std::error_code failed;
  return std::filesystem::equivalent(a, b, failed) && !failed;
}

/// Throws if the result would overwrite an input, unless --force is given.
void expect_inputs_are_kept(const AnyOperator& op, const Options& options) {
  if (options.force) return;
  for (const ArgumentSpec& spec : op.arguments()) {
    const std::string name(spec.name);
    if (spec.kind != Kind::tensor || !options.parsed.at(name).given()) continue;
    if (!same_file(options.files.at(name), options.output)) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--output: '{}' given, which is the input {}; accepted: another file, "
                            "or --force to overwrite that one",
                            options.output, spec.positional ? name : "--" + name));
  }
}

/// Returns a remark for rejected calls about 16-bit pictures, which are read as u16: "; photo.png
/// has 16 bits a channel, ...".
std::string remark_on(const std::vector<std::string>& deep_pictures) {
  if (deep_pictures.empty()) return "";
  return fmt::format("; {} has 16 bits a channel, and is u16: with 8 it is u8",
                     join(deep_pictures));
}

/// Writes the result. A result that the file format cannot hold is an error of the command line:
/// another file name helps, another machine does not.
void write_result(const std::string& path, const Tensor& result) {
  try {
    write_tensor_file(path, result);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported) throw;
    throw Error(ErrorCode::invalid_argument, fmt::format("--output: {}", error.what()));
  }
}

int run(const AnyOperator& op, const Options& options) {
  expect_tensor_file("--output", options.output);
  expect_folder_of("--output", options.output);
  expect_inputs_are_kept(op, options);
  const Backend backend = parse_backend(options.backend);
  if (const Availability here = available(backend); !here) {
    throw Error(ErrorCode::not_available, fmt::format("backend {}: {}", options.backend, here.why));
  }
  if (!options.rung.empty()) expect_rung(op, options.rung, backend);
  Context context = context_on(backend, options.threads, options.device);
  Invocation invocation;
  std::vector<std::string> deep_pictures;
  for (const ArgumentSpec& spec : op.arguments()) {
    const std::string name(spec.name);
    if (!options.parsed.at(name).given()) continue;
    switch (spec.kind) {
      case Kind::tensor:
        invocation.tensors[name] = load(options.files.at(name), context);
        if (!is_picture_file(options.files.at(name))) break;
        // Marks a picture: an operator may treat its channels separately.
        invocation.texts[name + ".picture"] = "";
        if (invocation.tensors[name].dtype() == DType::u16) {
          deep_pictures.push_back(options.files.at(name));
        }
        break;
      case Kind::number:
        invocation.numbers[name] = options.numbers.at(name);
        break;
      case Kind::flag:
        if (options.flags.at(name)) invocation.texts[name] = "";  // --log=no is read as false
        break;
      case Kind::text:
        invocation.texts[name] = options.texts.at(name);
        break;
    }
  }
  const bool by_choice = options.rung.empty() || options.rung == public_call;
  try {
    op.invoke(context, invocation, by_choice ? best : Pick{options.rung, true});
  } catch (const Error& error) {
    throw Error(error.code(), error.what() + remark_on(deep_pictures));
  }
  context.synchronize();
  write_result(options.output, invocation.result);
  fmt::print("{}: {} {}\n", options.output, to_string(invocation.result.dtype()),
             to_string(invocation.result.shape()));
  return exit_good;
}

CommandSpec::Action setup(Parser app) {
  auto actions = std::make_shared<std::vector<std::pair<Parser, CommandSpec::Action>>>();
  for (const AnyOperator* op : operators()) {
    const Parser one = app.add_command(std::string(op->name()), std::string(op->summary()));
    auto options = std::make_shared<Options>();
    const std::string command = fmt::format("rung run {}", op->name());
    std::string example = command;
    for (const ArgumentSpec& spec : op->arguments()) {
      add_argument(one, *options, spec);
      if (spec.positional) example += fmt::format(" {}.npy", spec.name);
    }
    one.add_option("-o,--output", options->output,
                   "the .npy or .png file to write; one that exists is replaced, an input only "
                   "with --force")
        .type_name("FILE")
        .required();
    one.add_flag("--force", options->force, "overwrite an input when the output is the same file");
    const Option backend =
        one.add_option("--backend", options->backend, "cpu, cuda, simt or opencl; default: cpu")
            .completes(complete_backends);
    one.add_option("--device", options->device, device_help).between(0, max_device).needs(backend);
    one.add_option("--threads", options->threads, "CPU threads; default: every core")
        .between(1, 4096);
    one.add_option("--rung", options->rung, "a rung by name; default: the library's choice")
        .completes(complete_rungs);
    one.purpose(fmt::format("{} The output is written in full or not at all.", tensor_files_help));
    const std::vector<const RunExample*> examples = run_examples(op->name());
    for (const RunExample* given : examples) {
      one.example(fmt::format("{} {}", command, given->words), std::string(given->comment));
    }
    if (examples.empty()) one.example(example + " -o out.npy");
    one.exit_codes({{exit_good, "the result is written"},
                    {exit_usage, "the command line or a file is wrong; nothing is written"},
                    {exit_not_here, "nothing here computes it; the message says why"}});
    actions->emplace_back(one, [op, options] { return run(*op, *options); });
  }
  app.purpose(
      "Applies an operator to arrays in .npy files, or pictures in .png files, and writes the "
      "result to another.\n"
      "`rung run OPERATOR --help` lists its arguments.");
  app.example("rung run softmax x.npy -o y.npy");
  app.example("rung run image photo.png -o grey.png");
  app.exit_codes({{exit_good, "the result is written"},
                  {exit_usage, "the command line or a file is wrong; nothing is written"},
                  {exit_not_here, "nothing here computes it; the message says why"}});
  return [actions] {
    for (const auto& [one, action] : *actions) {
      if (one.parsed()) return action();
    }
    return static_cast<int>(exit_usage);
  };
}

const Command self{{.name = "run",
                    .order = 50,
                    .summary = "apply an operator to .npy or .png files",
                    .setup = setup}};

}  // namespace
}  // namespace rung::workbench
