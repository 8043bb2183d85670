package org.ondeviceprofiler.core

import java.nio.file.Files
import java.nio.file.Path
import java.nio.file.Paths

/** The shared examples of the protocol; tests run in the project's folder. */
internal object Examples {
    private val folder: Path = Paths.get("protocol", "examples")

    fun bytes(name: String): ByteArray = Files.readAllBytes(folder.resolve(name))

    /** Every line, also a torn last one. */
    fun lines(name: String): List<ByteArray> =
        bytes(name).decodeToString().split('\n').filter { it.isNotEmpty() }.map { it.toByteArray() }

    fun bundle(): Bundle = decode(bytes("bundle.json"), "Bundle", "example", Bundle::read)

    fun plan(): Plan = decode(bytes("plan.json"), "Plan", "example", Plan::read)

    fun job(): Job = decode(bytes("job.json"), "Job", "example", Job::read)
}
