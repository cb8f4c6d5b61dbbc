#include "report/device_table.h"

#include <fmt/format.h>

#include <algorithm>

namespace pruner {

namespace {

double peak_gflops(const Target& target) {
  return (target.is_gpu() ? target.gpu.peak_flops : target.peak_flops * target.threads) * 1e-9;
}

double dram_gbs(const Target& target) {
  return (target.is_gpu() ? target.gpu.dram_bandwidth : target.dram_bandwidth) * 1e-9;
}

std::string print_line(const Target& target, size_t width) {
  const std::string what =
      target.is_gpu()
          ? fmt::format(
                "{} SMs{}{}", target.gpu.sms, target.gpu.arch.empty() ? "" : ", ", target.gpu.arch)
          : fmt::format("{} threads, {}", target.threads, target.mcpu);
  const std::string rates =
      peak_gflops(target) > 0
          ? fmt::format("{:>7.0f} GFLOP/s  {:>5.0f} GB/s", peak_gflops(target), dram_gbs(target))
          : fmt::format("{:<27}", target.source);
  return fmt::format("  {:<{}}  {}  {}\n", print(target), width, rates, what);
}

Json to_json(std::span<const Target> devices) {
  Json json = Json::array();
  for (const Target& target : devices) {
    json.push_back({{"target", print(target)},
                    {"fingerprint", device_fingerprint(target)},
                    {"peak_gflops", peak_gflops(target)},
                    {"dram_gbs", dram_gbs(target)},
                    {"source", target.source}});
  }
  return json;
}

std::string print_value(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_number_float()) return value.dump();
  const double number = value.get<double>();
  return number >= 1e6 ? fmt::format("{:g}e9", number * 1e-9) : fmt::format("{:g}", number);
}

void print_fields(const Json& json, const std::string& prefix, std::string& text) {
  for (const auto& [key, value] : json.items()) {
    if (value.is_object()) {
      print_fields(value, prefix + key + ".", text);
    } else {
      text += fmt::format("{:<27} {}\n", prefix + key, print_value(value));
    }
  }
}

}  // namespace

std::string print_devices(std::span<const Target> here, std::span<const Target> known) {
  size_t width = 0;
  for (const auto devices : {here, known}) {
    for (const Target& target : devices) width = std::max(width, print(target).size());
  }
  std::string text = "here:\n";
  for (const Target& target : here) text += print_line(target, width);
  text += "known (`pruner device show NAME`; --psa NAME):\n";
  for (const Target& target : known) text += print_line(target, width);
  return text;
}

Json devices_json(std::span<const Target> here, std::span<const Target> known) {
  return {{"here", to_json(here)}, {"known", to_json(known)}};
}

std::string print_fields(const Json& json) {
  std::string text;
  print_fields(json, "", text);
  return text;
}

}  // namespace pruner
