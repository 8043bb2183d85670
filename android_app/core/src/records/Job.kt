package org.ondeviceprofiler.core

/**
 * One measurement in one runner process; `bundle` is a folder on the device.
 *
 * The first image after loading is the cold one; `warmups`, `repeats` and `observerPairs` (timed images with the
 * samplers on and off in turn) follow it. `untethered` has the timed images wait until there is no external power,
 * and `restS` for so long doing nothing: energy's baseline.
 */
internal data class Job(
    val schemaVersion: Int,
    val jobId: String,
    val bundle: String,
    val bundleSha256: String,
    val plan: Plan,
    val inputs: InputFile,
    val engine: String,
    val threads: Int?,
    val warmups: Int,
    val repeats: Int,
    val observerPairs: Int,
    val measurement: Measurement,
    val sampling: Sampling,
    val onDisconnect: OnDisconnect,
    val untethered: Boolean = false,
    val restS: Double = 0.0,
) : Writable {
    override fun toJson(): JsonObject =
        jsonOf(
            "schema_version" to schemaVersion,
            "job_id" to jobId,
            "bundle" to bundle,
            "bundle_sha256" to bundleSha256,
            "plan" to plan,
            "inputs" to inputs,
            "engine" to engine,
            "threads" to threads,
            "warmups" to warmups,
            "repeats" to repeats,
            "observer_pairs" to observerPairs,
            "measurement" to measurement,
            "sampling" to sampling,
            "on_disconnect" to onDisconnect,
            "untethered" to untethered,
            "rest_s" to restS,
        )

    companion object {
        fun read(value: Value): Job =
            value.record {
                Job(
                    schemaVersion(default = SCHEMA_VERSION),
                    need("job_id").text(),
                    need("bundle").text(),
                    need("bundle_sha256").text(),
                    Plan.read(need("plan")),
                    InputFile.read(need("inputs")),
                    need("engine").name(),
                    need("threads").orNull { int() },
                    need("warmups").int(),
                    need("repeats").int(),
                    need("observer_pairs").int(),
                    Measurement.read(need("measurement")),
                    Sampling.read(need("sampling")),
                    OnDisconnect.read(need("on_disconnect")),
                    this["untethered"]?.boolean() ?: false,
                    this["rest_s"]?.real() ?: 0.0,
                )
            }
    }
}
