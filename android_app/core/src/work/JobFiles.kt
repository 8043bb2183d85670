package org.ondeviceprofiler.core

import java.nio.file.Path

/** What a job names on the device, checked against what it says of it. */
internal class JobFiles(private val job: Job, private val files: DeviceFiles) {
    val folder: Path = files.locate(job.bundle)

    /** Read the job's tensors. Throws Refusal where they are others, or lack one that the plan needs. */
    fun inputs(): Map<String, Tensor> {
        val path = files.locate(job.inputs.path)
        if (sha256Of(path) != job.inputs.sha256) throw Refusal("$path is not the input file that the job names")
        val tensors = readSafetensors(path)
        for (port in job.plan.inputs) {
            val tensor = tensors[port.name] ?: throw Refusal("$path has no input '${port.name}'")
            if (tensor.dtype != port.dtype || tensor.shape != port.shape) {
                val found = "'${port.name}' is ${tensor.dtype.word} ${tensor.shape}"
                throw Refusal("$path: $found, the plan takes ${port.dtype.word} ${port.shape}")
            }
        }
        return tensors
    }

    /** Read the manifest. Throws Refusal where it is another than the job names. */
    fun bundle(): Bundle {
        val bundle = loadManifest(folder)
        if (sha256Of(folder.resolve(MANIFEST)) != job.bundleSha256) {
            throw Refusal("$folder is not the bundle that the job names")
        }
        return bundle
    }
}
