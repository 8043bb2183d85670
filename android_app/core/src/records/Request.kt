package org.ondeviceprofiler.core

/** A line from host to runner. */
internal sealed interface Request : Writable {
    companion object {
        fun read(value: Value): Request =
            value.record {
                when (val kind = need("request").text()) {
                    "hello" -> HostHello.of(this)
                    "inspect" -> Inspect(need("paths").list { text() })
                    "start" -> Start(Job.read(need("job")))
                    "replay" -> Replay(need("job_id").text(), need("from_seq").integer())
                    "cancel" -> Cancel
                    "bye" -> Bye
                    else -> throw value.broken("there is no request '$kind'")
                }
            }
    }
}
