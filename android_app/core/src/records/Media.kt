package org.ondeviceprofiler.core

/** What a plan ends in. */
internal enum class Media(override val word: String) : Word {
    IMAGE("image"),
    TENSOR("tensor"),
}
