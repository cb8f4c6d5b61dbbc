// The settings of a session's provider: options of add_provider_for_devices() and of EPContext.
#pragma once

#include "onnxruntime/part.h"

namespace pruner::ort {

/// Options, each an entry "ep.prunerexecutionprovider.NAME" of the session.
struct Settings {
  std::string program;    // the file of the program pruner; empty: it is looked for
  std::string records;    // record file of a tuning run, for the modules
  std::string budget;     // time to tune each part for before the session is there, as "3m"
  std::string precision;  // flag --precision of `pruner compile`
  std::string denormals;  // flag --denormals of `pruner compile`
  std::string numerics;   // flag --numerics of `pruner compile`
  std::string cache_dir;  // modules of parts seen before
  int threads = 0;        // threads of an instance; 0: those that the module was made for
  int min_nodes = 3;      // smaller parts stay with ONNX Runtime, if they hold no product
  Dims dims;              // "batch=4,seq=128": what open dimensions are until a run says it
  // ONNX Runtime's options ep.context_*.
  bool context = false;         // the session writes a model with compiled parts
  bool context_inside = false;  // parts hold the modules instead of naming files
  std::string context_file;     // file of the written model; empty: beside the network's
};

Result<Settings> read_settings(const Calls& ort, const SessionOptions* options);

}  // namespace pruner::ort
