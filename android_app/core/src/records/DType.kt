package org.ondeviceprofiler.core

/** What a tensor's elements are; both take four bytes. */
public enum class DType(override val word: String) : Word {
    FLOAT32("float32"),
    INT32("int32"),
}
