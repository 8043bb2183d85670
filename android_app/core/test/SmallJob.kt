package org.ondeviceprofiler.core

import java.nio.file.Files
import java.nio.file.Path

/** Write the example bundle's manifest and inputs into a storage, and return a job for them. */
internal fun smallJob(storage: Path): Job {
    val bundle = Files.createDirectories(storage.resolve("bundle"))
    Files.write(bundle.resolve(MANIFEST), Examples.bytes("bundle.json"))
    val inputs = storage.resolve("inputs.safetensors")
    val tensors = mapOf("tokens" to Tensor.of(IntArray(16), 1, 16), "noise" to Tensor.of(FloatArray(256), 1, 4, 8, 8))
    Files.write(inputs, safetensors(tensors))
    return Examples.job().copy(
        bundle = bundle.toString(),
        bundleSha256 = sha256Of(bundle.resolve(MANIFEST)),
        inputs = InputFile("inputs.safetensors", sha256Of(inputs)),
        warmups = 0,
        repeats = 1,
        observerPairs = 0,
        onDisconnect = OnDisconnect(DisconnectKind.STOP_AFTER, 5.0),
    )
}
