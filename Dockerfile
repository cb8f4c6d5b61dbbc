# An image with everything built; a container tunes ResNet-50 as quickstart.sh does, into /pruner/out.
FROM debian:12
WORKDIR /pruner
COPY tools/packages.sh tools/packages.sh
RUN . tools/packages.sh && install_packages $build_packages $training_packages && \
    rm -rf /var/lib/apt/lists/*
COPY . .
RUN cmake --preset release && cmake --build build/release -j "$(nproc)" --target pruner
ENV PATH="/pruner/build/release:$PATH"
CMD ["./quickstart.sh"]
