package org.ondeviceprofiler.core

/** One of a closed set of words in a record. */
public interface Word {
    /** The word as it is written. */
    public val word: String
}
