package org.ondeviceprofiler.core

/** An engine could not load or run a component. */
public class EngineFailure(
    public val reason: EngineFailureReason,
    public val component: String,
    detail: String,
    cause: Throwable? = null,
) : RunnerFailure("$component: $detail", cause)
