package org.ondeviceprofiler.core

/**
 * Repeat `body` for each row of the tensors in `over`, or so many times.
 *
 * `carry` maps a loop value to the value it starts from; the body emits it anew each round, and it keeps its last
 * value after the loop. `index`, where named, is the round as an int32 tensor of shape [1].
 */
internal data class Loop(
    val over: LoopOver,
    val carry: Map<String, String>,
    val body: List<LoopStep>,
    val stage: String,
    val index: String?,
) : PlanStep {
    override fun toJson(): JsonObject =
        jsonOf(
            "kind" to "loop",
            "over" to over.written,
            "carry" to carry,
            "body" to body,
            "stage" to stage,
            "index" to index,
        )

    companion object {
        fun of(fields: Fields): Loop =
            Loop(
                LoopOver.read(fields.need("over")),
                fields.need("carry").map { text() },
                fields.need("body").list(LoopStep::read),
                fields.need("stage").text(),
                fields["index"]?.orNull { text() },
            )
    }
}
