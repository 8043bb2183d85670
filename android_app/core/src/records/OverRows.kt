package org.ondeviceprofiler.core

/** Each row of these tensors: element name to tensor. */
internal data class OverRows(val tensors: Map<String, String>) : LoopOver {
    override val written: Any get() = tensors
}
