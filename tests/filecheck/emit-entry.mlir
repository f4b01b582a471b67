// PASSES: emit-entry
//
// The entry unpacks pointers in order and heeds the limit; the status of @main comes out.

// CHECK-LABEL: llvm.func @main
// CHECK:       llvm.mlir.global external @polyblocks_thread_limit() {{.*}}: i32
// CHECK-LABEL: llvm.func @polyblocks_main
// CHECK-SAME:  (%[[ARGS:.*]]: !llvm.ptr {llvm.readonly}, %[[NT:.*]]: i32) -> i32
// CHECK:         %[[P0:.*]] = llvm.getelementptr inbounds %[[ARGS]][0]
// CHECK:         %[[A0:.*]] = llvm.load %[[P0]] invariant
// CHECK:         %[[P1:.*]] = llvm.getelementptr inbounds %[[ARGS]][1]
// CHECK:         %[[A1:.*]] = llvm.load %[[P1]] invariant
// CHECK:         %[[ADDRESS:.*]] = llvm.mlir.addressof @polyblocks_thread_limit
// CHECK:         %[[LIMIT:.*]] = llvm.load %[[ADDRESS]]
// CHECK:         %[[THREADS:.*]] = llvm.intr.smin(%[[NT]], %[[LIMIT]])
// CHECK:         %[[S:.*]] = llvm.call @main(%[[A0]], %[[A1]], %[[THREADS]])
// CHECK:         llvm.return %[[S]] : i32
llvm.func @main(%x: !llvm.ptr, %y: !llvm.ptr, %nt: i32) -> i32 {
  llvm.return %nt : i32
}
