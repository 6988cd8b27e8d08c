// SPDX-License-Identifier: Apache-2.0
// Trains classifiers of handwritten digits with rung alone, tests them, keeps checkpoints, and
// reads digits that somebody drew. README.md says how to call it; network.cpp is where the networks
// are.
#include <unistd.h>
#include <rung/harness/npy.hpp>
#include <rung/rung.hpp>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <numbers>
#include <string>
#include <vector>

#include "checkpoint.hpp"
#include "data.hpp"
#include "network.hpp"
#include "options.hpp"
#include "picture.hpp"

namespace digits {
namespace {

using rung::Context;
using rung::TensorRef;

/// Defaults of a model's training.
struct Recipe {
  const char* model;
  rung::LossKind loss;
  double margin;
  rung::OptimizerKind optimizer;
  double rate;
  int epochs, batch, shift;
};
constexpr Recipe recipes[] = {
    {"perceptron", rung::LossKind::hinge, 0, rung::OptimizerKind::sgd, 0.01, 20, 32, 0},
    {"softmax", rung::LossKind::cross_entropy, 1, rung::OptimizerKind::sgd, 0.01, 20, 32, 0},
    {"mlp", rung::LossKind::cross_entropy, 1, rung::OptimizerKind::adam, 1e-3, 30, 32, 1},
    {"lenet", rung::LossKind::cross_entropy, 1, rung::OptimizerKind::adam, 2e-3, 30, 32, 2},
};

Context context_of(const Options& o) {
  if (o.backend == "cpu") return Context::on(rung::Backend::cpu, o.threads);
  if (o.backend == "simt") return Context::on(rung::Backend::simt, o.threads);
  if (o.backend == "cuda") return Context::on(rung::Backend::cuda);
  reject("the backend is " + o.backend + "; accepted: cpu, cuda, simt");
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// One line, drawn over and over, on a terminal.
void show_progress(const char* what, std::int64_t done, std::int64_t of) {
  static const bool is_terminal = isatty(STDERR_FILENO) != 0;
  if (!is_terminal) return;
  constexpr int width = 30;
  const int filled = of == 0 ? width : static_cast<int>(width * done / of);
  std::fprintf(stderr, "\r%s [%.*s%*s]", what, filled, "##############################",
               width - filled, "");
  if (done == of) std::fputs("\r\033[K", stderr);
}

/// Profile of the training steps; waits for each part.
class Profile final : public Watch {
 public:
  void before(Context& context) override {
    context.synchronize();
    began_ = now();
  }
  void after(Context& context, const std::string& part) override {
    context.synchronize();
    const double seconds = now() - began_;
    for (auto& [name, sum] : parts_) {
      if (name == part) {
        sum += seconds;
        return;
      }
    }
    parts_.emplace_back(part, seconds);
  }
  void print(std::int64_t steps) const {
    double all = 0;
    for (const auto& [part, seconds] : parts_) all += seconds;
    for (const auto& [part, seconds] : parts_) {
      std::printf("  %-20s %8.1f us per step %5.1f %%\n", part.c_str(),
                  seconds / static_cast<double>(steps) * 1e6, seconds / all * 100);
    }
    std::printf("  %-20s %8.1f us per step\n", "all", all / static_cast<double>(steps) * 1e6);
  }

 private:
  double began_ = 0;
  std::vector<std::pair<std::string, double>> parts_;
};

struct Test {
  double loss = 0;
  double accuracy = 0;
  std::vector<std::int64_t> confusion = std::vector<std::int64_t>(classes * classes);
};

/// Returns the index of the largest of each row of n x 10 outputs.
std::vector<std::int64_t> predictions(Context& context, const TensorRef& outputs) {
  const std::int64_t n = outputs.shape[0];
  const rung::Tensor best(rung::DType::i64, {n}, context.device());
  rung::reduce(context, outputs, best, {.operation = rung::Reduction::argmax, .axes = {1}});
  context.synchronize();
  std::vector<std::int64_t> host(static_cast<std::size_t>(n));
  rung::copy(best, TensorRef(host));
  return host;
}

/// Trains one model.
class Run {
 public:
  Run(const Options& options, const Recipe& recipe, const Split& split)
      : options_(options),
        recipe_(recipe),
        split_(split),
        context_(context_of(options)),
        batch_(options.batch > 0 ? options.batch : recipe.batch),
        network_(recipe.model, context_, {1, split.train.edge, split.train.edge},
                 std::max<std::int64_t>(batch_, split.test.count()),
                 static_cast<std::uint64_t>(options.seed)),
        gradient_(rung::DType::f32, {batch_, classes}, context_.device()) {
    progress_.epochs = options.epochs > 0 ? options.epochs : recipe.epochs;
    progress_.batch = batch_;
    progress_.seed = options.seed;
    progress_.shift = options.shift >= 0 ? options.shift : recipe.shift;
    progress_.rate = options.rate > 0 ? options.rate : recipe.rate;
    progress_.scale = Scale::of(split.train);
    if (options.resume) restore(options.checkpoint, recipe.model, progress_, network_.parameters);
    test_.upload(split.test, progress_.scale, context_);
    losses_ = rung::Tensor(rung::DType::f32, {batches()}, context_.device());
  }

  void train() {
    std::printf("%s: %lld parameters, %lld images, %s\n", recipe_.model,
                static_cast<long long>(network_.parameters.size()),
                static_cast<long long>(split_.train.count()), context_.info().name.c_str());
    std::vector<float> curve;
    const double begin = now();
    while (progress_.epoch < progress_.epochs && !stopped()) {
      const double started = now();
      const std::vector<float> losses = epoch();
      curve.insert(curve.end(), losses.begin(), losses.end());
      double mean = 0;
      for (const float loss : losses) mean += loss / static_cast<double>(losses.size());
      const double seconds = now() - started;
      if (stopped()) break;
      ++progress_.epoch;
      const Test result = test();
      std::printf("epoch %3lld  loss %.6f  test loss %.6f  accuracy %6.2f %%  %.2f s\n",
                  static_cast<long long>(progress_.epoch), mean, result.loss, 100 * result.accuracy,
                  seconds);
      std::fflush(stdout);
      if (!options_.checkpoint.empty()) {
        save(options_.checkpoint, recipe_.model, progress_, network_.parameters);
      }
    }
    std::printf("%s: %.1f s\n", recipe_.model, now() - begin);
    if (options_.profile) profile_.print(static_cast<std::int64_t>(curve.size()));
    if (!options_.curve.empty()) rung::write_npy(options_.curve, rung::ConstTensorRef(curve));
  }

  Test test() {
    const TensorRef outputs = network_.forward(context_, test_.images);
    const rung::Tensor result(rung::DType::f32, {1}, context_.device());
    rung::loss(context_, outputs, test_.labels, result,
               {.kind = recipe_.loss, .margin = recipe_.margin});
    const std::vector<std::int64_t> guesses = predictions(context_, outputs);
    std::vector<float> loss(1);
    rung::copy(result, TensorRef(loss));
    Test made;
    made.loss = loss[0];
    for (std::size_t i = 0; i < guesses.size(); ++i) {
      const std::int64_t label = split_.test.labels[i];
      made.accuracy += guesses[i] == label ? 1.0 / static_cast<double>(guesses.size()) : 0;
      ++made.confusion[static_cast<std::size_t>(label * classes + guesses[i])];
    }
    return made;
  }

  /// Prints the digit that a picture shows, with the outputs.
  void read(const std::string& path) {
    OnDevice picture;
    picture.upload(read_picture(path, split_.train.edge), progress_.scale, context_);
    const TensorRef outputs = network_.forward(context_, picture.images);
    std::vector<float> values(classes);
    context_.synchronize();
    rung::copy(outputs, TensorRef(values, {1, classes}));
    std::printf("%s: %lld\n", path.c_str(),
                static_cast<long long>(predictions(context_, outputs)[0]));
    for (int digit = 0; digit < classes; ++digit) {
      std::printf("  %d  %8.3f\n", digit, values[static_cast<std::size_t>(digit)]);
    }
  }

 private:
  [[nodiscard]] std::int64_t batches() const {
    return (split_.train.count() + batch_ - 1) / batch_;
  }
  [[nodiscard]] bool stopped() const {
    return options_.steps > 0 && progress_.step >= options_.steps;
  }

  /// The losses of its steps. They stay on the device until the end, and so do the images: nothing
  /// is waited for on the way.
  std::vector<float> epoch() {
    const Images images =
        shuffled(split_.train, static_cast<std::uint64_t>(progress_.seed),
                 static_cast<int>(progress_.epoch), static_cast<int>(progress_.shift));
    if (!options_.copy_steps) train_.upload(images, progress_.scale, context_);
    std::vector<float> losses(static_cast<std::size_t>(batches()));
    std::int64_t done = 0;
    for (; done < batches() && !stopped(); ++done) {
      const std::int64_t first = done * batch_;
      const std::int64_t n = std::min(batch_, split_.train.count() - first);
      TensorRef loss = losses_;
      loss.data = losses_.data<float>() + done;
      loss.shape = {1};
      if (options_.copy_steps) {
        OnDevice one;
        one.upload(part(images, first, n), progress_.scale, context_);
        step(one.images, one.labels, loss);
        context_.synchronize();
        rung::copy(loss, TensorRef(&losses[static_cast<std::size_t>(done)], {1}));
      } else {
        step(train_.batch(first, n), train_.batch_labels(first, n), loss);
      }
      show_progress(recipe_.model, done + 1, batches());
    }
    losses.resize(static_cast<std::size_t>(done));
    if (!options_.copy_steps) {
      TensorRef made = losses_;
      made.shape[0] = done;
      context_.synchronize();
      rung::copy(made, TensorRef(losses));
    }
    return losses;
  }

  /// Forward, loss and its gradient, backward, step: the textbook's four lines.
  void step(const rung::ConstTensorRef& images, const rung::ConstTensorRef& labels,
            const TensorRef& loss) {
    TensorRef gradient = gradient_;
    gradient.shape[0] = images.shape[0];
    Parameters& p = network_.parameters;
    const bool adam = recipe_.optimizer == rung::OptimizerKind::adam;
    // From the rate down to 0 along a half wave of a cosine (I. Loshchilov and F. Hutter, 2016).
    const double share =
        static_cast<double>(progress_.step) / static_cast<double>(progress_.epochs * batches());
    const double rate = progress_.rate * 0.5 * (1 + std::cos(std::numbers::pi * share));
    ++progress_.step;

    network_.watch = options_.profile ? &profile_ : nullptr;
    const TensorRef outputs = network_.forward(context_, images);
    if (options_.profile) profile_.before(context_);
    rung::loss(context_, outputs, labels, loss,
               {.kind = recipe_.loss, .margin = recipe_.margin, .dx = gradient});
    if (options_.profile) profile_.after(context_, "loss and its gradient");
    network_.backward(context_, gradient);
    if (options_.profile) profile_.before(context_);
    rung::optimizer(context_, p.values, p.gradients,
                    {.kind = recipe_.optimizer,
                     .learning_rate = rate,
                     .momentum = adam ? 0 : 0.9,
                     .step = static_cast<int>(progress_.step),
                     .first_moment = p.first_moment,
                     .second_moment = adam ? TensorRef(p.second_moment) : TensorRef()});
    if (options_.profile) profile_.after(context_, "optimizer");
    network_.watch = nullptr;
  }

  static Images part(const Images& images, std::int64_t first, std::int64_t n) {
    const auto pixel = images.pixels.begin() + first * images.size();
    const auto label = images.labels.begin() + first;
    return {.edge = images.edge,
            .pixels = {pixel, pixel + n * images.size()},
            .labels = {label, label + n}};
  }

  const Options& options_;
  const Recipe& recipe_;
  const Split& split_;
  Context context_;
  std::int64_t batch_;
  Network network_;
  Progress progress_;
  rung::Tensor gradient_, losses_;
  OnDevice train_, test_;
  Profile profile_;
};

void print_confusion(const Test& test) {
  std::puts("rows: what it was, columns: what was read");
  std::printf("    ");
  for (int guess = 0; guess < classes; ++guess) std::printf("%5d", guess);
  std::puts("");
  auto count = test.confusion.begin();
  for (int label = 0; label < classes; ++label) {
    std::printf("%4d", label);
    for (int guess = 0; guess < classes; ++guess) {
      std::printf("%5lld", static_cast<long long>(*count++));
    }
    std::puts("");
  }
}

void run(const Options& options) {
  const Split split = load(options.data, options.set);
  bool found = false;
  for (const Recipe& recipe : recipes) {
    if (!options.model.empty() && options.model != recipe.model) continue;
    found = true;
    const bool small = split.train.edge != 28;
    if (small && std::string("lenet") == recipe.model) {
      if (options.model.empty()) continue;
      reject("the images are " + std::to_string(split.train.edge) +
             " pixels wide; accepted: 28 for lenet");
    }
    Options one = options;
    if (!options.png.empty()) one.resume = true;
    Run run(one, recipe, split);
    if (!options.png.empty()) {
      run.read(options.png);
      continue;
    }
    run.train();
    if (options.steps > 0) continue;
    const Test result = run.test();
    print_confusion(result);
    std::printf("%s: accuracy %.2f %% of %lld images it has not seen\n", recipe.model,
                100 * result.accuracy, static_cast<long long>(split.test.count()));
  }
  if (!found)
    reject("the model is " + options.model + "; accepted: perceptron, softmax, mlp, lenet");
}

}  // namespace
}  // namespace digits

int main(int count, char** arguments) {
  try {
    digits::run(digits::parse(count, arguments));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "example_digits: %s\n", error.what());
    return 1;
  }
}
