# Embeds models/pam_cpu.safetensors as bytes in the layer model (shipped_weights() of
# model/shipped_weights.h). The program knows the weights wherever the program lies.
set(shipped_weights_file ${PROJECT_SOURCE_DIR}/models/pam_cpu.safetensors)
configure_file(${PROJECT_SOURCE_DIR}/cmake/shipped_weights.S.in
               ${PROJECT_BINARY_DIR}/shipped_weights.S @ONLY)
set_source_files_properties(${PROJECT_BINARY_DIR}/shipped_weights.S
                            PROPERTIES OBJECT_DEPENDS ${shipped_weights_file})
target_sources(pruner_model PRIVATE ${PROJECT_BINARY_DIR}/shipped_weights.S)
