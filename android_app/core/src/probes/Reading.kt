package org.ondeviceprofiler.core

/** A file's text, or why there is none. */
public class Reading private constructor(public val text: String?, public val reason: String?) {
    public companion object {
        /** A file that was read. */
        public fun of(text: String): Reading = Reading(text, null)

        /** A file that was not. */
        public fun missing(reason: String): Reading = Reading(null, reason)
    }
}
