package org.ondeviceprofiler.core

/**
 * What a runner says of itself: `engines` are the versions of its runtimes by name.
 *
 * A `virtual` device is only simulated; a `synthetic` runner computes nothing and models its costs.
 */
public class Identity(
    public val platform: String,
    public val pid: Long,
    public val engines: Map<String, String>,
    public val virtual: Boolean,
    public val synthetic: Boolean,
)
