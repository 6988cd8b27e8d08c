// SPDX-License-Identifier: Apache-2.0
// The command line: names, values, and what is wrong with them.
#include "options.hpp"

#include <rung/rung.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>

namespace digits {
namespace {

constexpr const char* usage =
    "example_digits [options]     trains, tests, and says how well it went\n"
    "  --model NAME       perceptron, softmax, mlp or lenet; default: one after the other\n"
    "  --data FOLDER      where tools/digits_data.py wrote the data; default build/digits\n"
    "  --set NAME         mnist (28 x 28 pixels, the default) or digits (8 x 8; not for lenet)\n"
    "  --backend NAME     cpu (default), cuda or simt, the simulated GPU; --threads N for cpu and "
    "simt\n"
    "  --epochs N --batch N --rate X --shift N --seed N     how it is trained\n"
    "  --steps N          stops after so many steps\n"
    "  --checkpoint FILE.npz     written after each epoch; with --resume, read first\n"
    "  --png FILE         reads a digit from a picture, with the parameters in the checkpoint\n"
    "  --curve FILE.npy   the loss of every step\n"
    "  --copy-steps       data to the device and the loss back at every step, not once per epoch\n"
    "  --profile          what each layer costs\n";

}  // namespace

void reject(const std::string& what) { throw rung::Error(rung::ErrorCode::invalid_argument, what); }

Options parse(int count, char** arguments) {
  Options o;
  const std::map<std::string, std::string*> texts{{"--model", &o.model},
                                                  {"--data", &o.data},
                                                  {"--set", &o.set},
                                                  {"--backend", &o.backend},
                                                  {"--checkpoint", &o.checkpoint},
                                                  {"--png", &o.png},
                                                  {"--curve", &o.curve}};
  const std::map<std::string, int*> numbers{{"--epochs", &o.epochs},   {"--batch", &o.batch},
                                            {"--shift", &o.shift},     {"--seed", &o.seed},
                                            {"--threads", &o.threads}, {"--steps", &o.steps}};
  const std::map<std::string, bool*> flags{
      {"--resume", &o.resume}, {"--profile", &o.profile}, {"--copy-steps", &o.copy_steps}};
  for (int i = 1; i < count; ++i) {
    const std::string name = arguments[i];
    if (name == "--help" || name == "-h") {
      std::fputs(usage, stdout);
      std::exit(0);
    }
    if (const auto flag = flags.find(name); flag != flags.end()) {
      *flag->second = true;
      continue;
    }
    const bool is_rate = name == "--rate";
    const auto text = texts.find(name);
    const auto number = numbers.find(name);
    if (!is_rate && text == texts.end() && number == numbers.end()) {
      reject("there is no option " + name + "; accepted:\n" + usage);
    }
    if (++i == count) reject(name + " is the last word; accepted: with a value behind it");
    const std::string value = arguments[i];
    if (text != texts.end()) {
      *text->second = value;
      continue;
    }
    char* end = nullptr;
    const double read = std::strtod(value.c_str(), &end);
    const bool whole = read >= 0 && read <= 1e9 && read == std::floor(read);
    if (value.empty() || *end != 0 || !(is_rate ? read > 0 && std::isfinite(read) : whole)) {
      reject(std::string(name).append(" is ").append(value).append(
          is_rate ? "; accepted: above 0" : "; accepted: a whole number, 0 or more"));
    }
    if (is_rate) {
      o.rate = read;
    } else {
      *number->second = static_cast<int>(read);
    }
  }
  if (o.resume && o.checkpoint.empty())
    reject("--resume is given alone; accepted: with --checkpoint");
  if (!o.png.empty() && (o.checkpoint.empty() || o.model.empty())) {
    reject("--png is given alone; accepted: with --checkpoint and --model");
  }
  return o;
}

}  // namespace digits
