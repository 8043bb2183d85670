package org.ondeviceprofiler.core

/** A line from runner to host that is not an event. */
internal sealed interface Reply : Writable {
    companion object {
        fun read(value: Value): Reply =
            value.record {
                when (val kind = need("reply").text()) {
                    "hello" -> RunnerHello.of(this)
                    "inspection" -> Inspection(need("receipts").list(Receipt::read))
                    "accepted" -> Accepted(need("job_id").text())
                    "refused" -> Refused(need("code").word(RefusalCode.entries), need("reason").text())
                    else -> throw value.broken("there is no reply '$kind'")
                }
            }
    }
}
