package org.ondeviceprofiler.virtual

import java.io.IOException
import kotlin.system.exitProcess
import org.ondeviceprofiler.core.Runner

private const val USAGE = "usage: --storage DIR --model HOST:PORT [--root DIR] [--idle-timeout SECONDS]"
private const val WRONG_USAGE = 2

/** Serve one job as an app of a virtual phone would: `--storage DIR --root DIR --model HOST:PORT`. */
public fun main(arguments: Array<String>) {
    val options =
        try {
            Options.parse(arguments.toList())
        } catch (error: IllegalArgumentException) {
            System.err.println("${error.message}\n$USAGE")
            exitProcess(WRONG_USAGE)
        }
    exitProcess(serve(options))
}

private fun serve(options: Options): Int =
    try {
        val control = ControlChannel.open(options.modelHost, options.modelPort)
        val leave: (Int) -> Unit = { Runtime.getRuntime().halt(it) }
        Runner(options.storage, options.root, VirtualShell(control), options.idleTimeoutMs, leave).run()
    } catch (error: IOException) {
        gone(error)
    } catch (error: ModelLost) {
        gone(error)
    }

private fun gone(error: Exception): Int {
    System.err.println("the runner cannot work: ${error.message ?: error}")
    return 1
}
