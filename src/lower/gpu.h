// Loop nest of a GPU candidate -> loop IR: one kernel for each root.
#pragma once

#include "lower/program.h"
#include "space/space.h"

namespace pruner {

/// The plain loops of a legal nest, with notes for the passes; `name` becomes the program's.
Program lower_for_gpu(const Sketch& sketch, const LoopNest& nest, const Gpu& gpu, std::string name);

}  // namespace pruner
