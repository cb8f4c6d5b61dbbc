// pruner measure: a bundle of built programs -> records, where the device is.
#include <fmt/format.h>

#include <cctype>

#include "bundle/measure_bundle.h"
#include "cli/commands.h"
#include "cli/duration.h"
#include "cli/interrupt.h"
#include "cli/measurer.h"
#include "report/live_view.h"
#include "runtime/gpu_context.h"
#include "support/log.h"
#include "target/device_file.h"
#include "tune/recorded.h"

namespace pruner {

namespace {

constexpr double kShownEveryS = 1;

std::string letters_and_digits(std::string_view text) {
  std::string kept;
  for (const char c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      kept += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return kept;
}

/// Whether a driver's name of a card is of that model: "NVIDIA H100 80GB HBM3" is h100.
bool is_model(std::string_view card, std::string_view model) {
  const std::string name = letters_and_digits(card);
  const std::string wanted = letters_and_digits(model.substr(0, model.find('_')));
  const size_t at = name.find(wanted);
  const size_t end = at + wanted.size();
  return at != std::string::npos &&
         (end == name.size() || std::isdigit(static_cast<unsigned char>(name[end])) == 0 ||
          std::isdigit(static_cast<unsigned char>(name[end - 1])) == 0);
}

/// Records say which model they are of, so a bundle of one is not measured on another.
Result<Unit> check_card(const Target& target, int number) {
  const std::string& model = target.device;
  const auto known = [&](const DeviceFile& file) { return file.name == model; };
  if (!target.is_gpu() || std::ranges::none_of(device_files(), known)) return Unit{};
  TRY_ASSIGN(const std::vector<GpuFacts> here, list_gpus(target.backend));
  const GpuFacts& facts = here[static_cast<size_t>(number)];
  if (is_model(facts.name, model)) return Unit{};
  return Error("its programs are for ",
               model,
               ", and ",
               backend_name(target.backend),
               ":",
               number,
               " is ",
               facts.name,
               ": build them for --target '",
               backend_name(target.backend),
               facts.arch[0] == '\0' ? "" : std::string(" --arch=") + facts.arch,
               "'");
}

struct MeasureBundle {
  std::string bundle, records, budget, trust, device;
  bool anybody = false;

  void add_to(CLI::App& app) {
    begin_group(app, OptionGroup::kInput);
    add_option(app, "BUNDLE", bundle)
        .help("what `pruner tune`, `compare` and `dataset collect` write with --build-only");
    add_option(app, "--trust FILE", trust)
        .help("file of the public keys of those whose programs are run");
    add_option(app, "--unsigned", anybody).help("run programs whoever has built them");
    begin_group(app, OptionGroup::kBudget);
    add_option(app, "--budget TIME", budget)
        .help("start no program after this time, 30s or 10m: the one that runs is finished",
              "none");
    begin_group(app, OptionGroup::kMeasuring);
    add_option(app, "--device NAME", device)
        .help("GPU that measures, of the bundle's kind: cuda:1", "the first");
    begin_group(app, OptionGroup::kFiles);
    add_option(app, "--records FILE", records)
        .help("the record file to write; what one that is there has is not measured again");
  }

  Result<BundleTrust> read_trust() const {
    if (anybody && !trust.empty()) return Error("--trust and --unsigned exclude each other");
    if (anybody) return BundleTrust{.keys = {}, .anybody = true};
    if (trust.empty())
      return Error(
          "measure: a bundle has code of its own: give --trust FILE, the public keys of those who "
          "sign it, or --unsigned");
    TRY_ASSIGN(std::vector<std::string> keys, read_public_keys(trust));
    return BundleTrust{.keys = std::move(keys)};
  }

  /// The runner of the bundle's programs, as this machine has it.
  Result<std::unique_ptr<LocalMeasurer>> make_runner(const BundleHead& head,
                                                     const std::atomic<bool>& interrupted) const {
    const auto error = [&](const Error& why) { return Error(bundle, ": ", why.message()); };
    const Result<std::vector<int>> numbers = parse_devices(device, head.target);
    if (!numbers.ok()) return Error("--device: ", numbers.error().message());
    if (numbers->size() != 1) return Error("--device: one GPU measures a bundle");
    if (const auto runs = check_runs(head.target, *numbers); !runs.ok()) return error(runs.error());
    if (const auto card = check_card(head.target, numbers->front()); !card.ok())
      return error(card.error());
    MeasureOptions options = head.options;
    options.build_jobs = 1;
    options.device = numbers->front();
    options.stop = [&interrupted] { return interrupted.load(); };
    options.weights_from = weights_from(head.target, bundle, head.network_bytes);
    TRY_ASSIGN(const std::string program, own_program());
    return LocalMeasurer::make(options, program);
  }

  static Json to_json(const BundleProgress& progress) {
    return {{"earlier", progress.earlier},
            {"ok", progress.ok},
            {"failed", progress.failed},
            {"seconds", progress.seconds},
            {"per_second", progress.per_second()},
            {"whole", progress.whole}};
  }

  Result<int> run(const Invocation& call) const {
    if (bundle.empty()) return Error("measure: no bundle is named");
    if (records.empty())
      return Error("measure: no file to write is named; give one with --records FILE");
    TRY_ASSIGN(BundleTrust trusted, read_trust());
    TRY_ASSIGN(const double budget_s, parse_budget_s(budget));
    TRY_ASSIGN(BundleReader reader, BundleReader::open(bundle, std::move(trusted)));
    const BundleHead& head = reader.head();
    if (head.version != kVersion)
      return Error(bundle, ": is of pruner ", head.version, ", this is ", kVersion);
    const std::atomic<bool>& interrupted = catch_interrupts();
    TRY_ASSIGN(const std::unique_ptr<LocalMeasurer> runner, make_runner(head, interrupted));
    // Locked before it is read: nobody else adds to it in between.
    TRY_ASSIGN(RecordWriter writer, RecordWriter::open(records));
    MeasureBundleOptions options{.budget_s = budget_s, .known = {}};
    TRY_ASSIGN(options.known, read_intact_records(records));
    LiveView live(stderr, call.quiet);
    double shown_s = 0;
    const auto on_result = [&](const BundleProgress& progress) {
      if (progress.seconds - shown_s < kShownEveryS) return;
      shown_s = progress.seconds;
      live.say(print(progress));
    };
    TRY_ASSIGN(const BundleProgress done,
               measure_bundle(reader, options, {*runner, writer, interrupted, on_result}));
    live.finish();
    release_interrupts();
    if (done.cut_short) log_warning("{}: is cut short: there were more programs in it", bundle);
    call.show(to_json(done), print(done) + "\n");
    for (const auto& [text, reason] : done.reasons)
      fmt::print(stderr, "pruner: {} failed: {}\n", reason.count, text);
    if (interrupted) return kInterrupted;
    const bool all_failed = done.ok == 0 && done.failed > 0;
    return all_failed ? kFailed : kDone;
  }

  std::string print(const BundleProgress& progress) const {
    std::string text = fmt::format("{}: {} programs measured, {} of them failed, in {:.1f} s",
                                   records,
                                   progress.measured(),
                                   progress.failed,
                                   progress.seconds);
    if (progress.measured() > 0) text += fmt::format(" ({:.1f} a second)", progress.per_second());
    if (progress.ended && !progress.whole) text += "; not all: the same command goes on";
    if (progress.earlier > 0) text += fmt::format("; {} were there", progress.earlier);
    return text;
  }
};

}  // namespace

RunCommand make_measure(CLI::App& app) { return make_command<MeasureBundle>(app); }

}  // namespace pruner
