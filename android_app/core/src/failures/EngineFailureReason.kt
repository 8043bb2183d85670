package org.ondeviceprofiler.core

/** What an engine failed at; the words of the protocol. */
public enum class EngineFailureReason(override val word: String) : Word {
    LOAD_FAILED("load_failed"),
    INFERENCE_FAILED("inference_failed"),
    OUT_OF_MEMORY("out_of_memory"),
}
