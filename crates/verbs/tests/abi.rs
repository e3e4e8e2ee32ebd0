//! What a C compiler makes of the installed header, beside our own declarations.

use std::mem::offset_of;
use std::process::Command;
use weft_verbs::abi;

/// A line of the probe and what it must print.
struct Asked {
    expression: String,
    ours: usize,
}

macro_rules! sizes {
    ($list:ident, $($c:literal = $ours:ty),* $(,)?) => {
        $($list.push(Asked { expression: format!("sizeof({})", $c), ours: size_of::<$ours>() });)*
    };
}

macro_rules! offsets {
    ($list:ident, $c:literal = $ours:ty: $($member:literal = $($field:ident).+),* $(,)?) => {
        $($list.push(Asked {
            expression: format!("offsetof({}, {})", $c, $member),
            ours: offset_of!($ours, $($field).+),
        });)*
    };
}

macro_rules! constants {
    ($list:ident, $($c:literal = $ours:expr),* $(,)?) => {
        $($list.push(Asked { expression: $c.into(), ours: $ours as usize });)*
    };
}

fn asked() -> Vec<Asked> {
    let mut list = Vec::new();
    sizes!(
        list,
        "struct ibv_context_ops" = abi::ContextOps,
        "struct ibv_mr" = abi::Mr,
        "struct ibv_comp_channel" = abi::CompChannel,
        "struct ibv_port_attr" = abi::PortAttr,
        "struct ibv_gid_entry" = abi::GidEntry,
        "struct ibv_qp_cap" = abi::QpCap,
        "struct ibv_qp_init_attr" = abi::QpInitAttr,
        "struct ibv_ah_attr" = abi::AhAttr,
        "struct ibv_global_route" = abi::GlobalRoute,
        "struct ibv_qp_attr" = abi::QpAttr,
        "struct ibv_sge" = abi::Sge,
        "struct ibv_send_wr" = abi::SendWr,
        "struct ibv_recv_wr" = abi::RecvWr,
        "struct ibv_wc" = abi::Wc,
    );
    offsets!(list, "struct ibv_context" = abi::Context:
        "ops" = ops, "ops.poll_cq" = ops.poll_cq, "ops.req_notify_cq" = ops.req_notify_cq,
        "ops.post_send" = ops.post_send, "ops.post_recv" = ops.post_recv, "cmd_fd" = cmd_fd,
        "async_fd" = async_fd,
    );
    offsets!(list, "struct ibv_cq" = abi::Cq: "context" = context, "channel" = channel);
    offsets!(list, "struct ibv_comp_channel" = abi::CompChannel: "fd" = fd);
    offsets!(list, "struct ibv_qp" = abi::Qp: "context" = context, "qp_num" = qp_num);
    offsets!(list, "struct ibv_mr" = abi::Mr: "lkey" = lkey, "rkey" = rkey);
    offsets!(list, "struct ibv_port_attr" = abi::PortAttr:
        "active_mtu" = active_mtu, "gid_tbl_len" = gid_tbl_len, "phys_state" = phys_state,
    );
    offsets!(list, "struct ibv_gid_entry" = abi::GidEntry: "gid_type" = gid_type);
    offsets!(list, "struct ibv_qp_init_attr" = abi::QpInitAttr:
        "cap" = cap, "cap.max_inline_data" = cap.max_inline_data, "qp_type" = qp_type,
        "sq_sig_all" = sq_sig_all,
    );
    offsets!(list, "struct ibv_qp_attr" = abi::QpAttr:
        "path_mtu" = path_mtu, "rq_psn" = rq_psn, "sq_psn" = sq_psn, "dest_qp_num" = dest_qp_num,
        "qp_access_flags" = qp_access_flags, "ah_attr.grh.flow_label" = ah_attr.grh.flow_label,
        "ah_attr.grh.sgid_index" = ah_attr.grh.sgid_index,
        "ah_attr.grh.hop_limit" = ah_attr.grh.hop_limit,
        "ah_attr.grh.traffic_class" = ah_attr.grh.traffic_class,
        "ah_attr.is_global" = ah_attr.is_global, "ah_attr.port_num" = ah_attr.port_num,
        "pkey_index" = pkey_index, "max_rd_atomic" = max_rd_atomic,
        "max_dest_rd_atomic" = max_dest_rd_atomic, "min_rnr_timer" = min_rnr_timer,
        "port_num" = port_num, "timeout" = timeout, "retry_cnt" = retry_cnt,
        "rnr_retry" = rnr_retry,
    );
    offsets!(list, "struct ibv_send_wr" = abi::SendWr:
        "next" = next, "sg_list" = sg_list, "num_sge" = num_sge, "opcode" = opcode,
        "send_flags" = send_flags, "imm_data" = imm_data, "wr.rdma.remote_addr" = remote_addr,
        "wr.rdma.rkey" = rkey,
    );
    offsets!(list, "struct ibv_recv_wr" = abi::RecvWr: "sg_list" = sg_list, "num_sge" = num_sge);
    offsets!(list, "struct ibv_wc" = abi::Wc:
        "status" = status, "opcode" = opcode, "byte_len" = byte_len, "imm_data" = imm_data,
        "qp_num" = qp_num,
    );
    constants!(
        list,
        "IBV_QPT_RC" = abi::QPT_RC,
        "IBV_PORT_ACTIVE" = abi::PORT_ACTIVE,
        "IBV_GID_TYPE_ROCE_V2" = abi::GID_TYPE_ROCE_V2,
        "IBV_QPS_INIT" = abi::state::INIT,
        "IBV_QPS_RTR" = abi::state::RTR,
        "IBV_QPS_RTS" = abi::state::RTS,
        "IBV_QPS_ERR" = abi::state::ERR,
        "IBV_QP_STATE" = abi::mask::STATE,
        "IBV_QP_ACCESS_FLAGS" = abi::mask::ACCESS_FLAGS,
        "IBV_QP_PKEY_INDEX" = abi::mask::PKEY_INDEX,
        "IBV_QP_PORT" = abi::mask::PORT,
        "IBV_QP_AV" = abi::mask::AV,
        "IBV_QP_PATH_MTU" = abi::mask::PATH_MTU,
        "IBV_QP_TIMEOUT" = abi::mask::TIMEOUT,
        "IBV_QP_RETRY_CNT" = abi::mask::RETRY_CNT,
        "IBV_QP_RNR_RETRY" = abi::mask::RNR_RETRY,
        "IBV_QP_RQ_PSN" = abi::mask::RQ_PSN,
        "IBV_QP_MAX_QP_RD_ATOMIC" = abi::mask::MAX_QP_RD_ATOMIC,
        "IBV_QP_MIN_RNR_TIMER" = abi::mask::MIN_RNR_TIMER,
        "IBV_QP_SQ_PSN" = abi::mask::SQ_PSN,
        "IBV_QP_MAX_DEST_RD_ATOMIC" = abi::mask::MAX_DEST_RD_ATOMIC,
        "IBV_QP_DEST_QPN" = abi::mask::DEST_QPN,
        "IBV_ACCESS_LOCAL_WRITE" = abi::access::LOCAL_WRITE,
        "IBV_ACCESS_REMOTE_WRITE" = abi::access::REMOTE_WRITE,
        "IBV_ACCESS_REMOTE_READ" = abi::access::REMOTE_READ,
        "IBV_WR_RDMA_WRITE" = abi::send::RDMA_WRITE,
        "IBV_WR_RDMA_WRITE_WITH_IMM" = abi::send::RDMA_WRITE_WITH_IMM,
        "IBV_WR_SEND" = abi::send::SEND,
        "IBV_WR_RDMA_READ" = abi::send::RDMA_READ,
        "IBV_SEND_SIGNALED" = abi::send::SIGNALED,
        "IBV_SEND_INLINE" = abi::send::INLINE,
        "IBV_WC_SUCCESS" = abi::wc::SUCCESS,
        "IBV_WC_WR_FLUSH_ERR" = abi::wc::WR_FLUSH_ERR,
        "IBV_WC_RETRY_EXC_ERR" = abi::wc::RETRY_EXC_ERR,
        "IBV_WC_RNR_RETRY_EXC_ERR" = abi::wc::RNR_RETRY_EXC_ERR,
        "IBV_WC_SEND" = abi::wc::OP_SEND,
        "IBV_WC_RDMA_WRITE" = abi::wc::OP_RDMA_WRITE,
        "IBV_WC_RDMA_READ" = abi::wc::OP_RDMA_READ,
        "IBV_WC_RECV" = abi::wc::OP_RECV,
        "IBV_WC_RECV_RDMA_WITH_IMM" = abi::wc::OP_RECV_RDMA_WITH_IMM,
    );
    list
}

#[test]
fn declarations_are_those_of_the_installed_header() {
    if !std::path::Path::new("/usr/include/infiniband/verbs.h").exists() {
        println!("skipped: no infiniband/verbs.h here (libibverbs-dev)");
        return;
    }
    let list = asked();
    let mut probe = String::from(
        "#include <infiniband/verbs.h>\n#include <stdio.h>\n#include <stddef.h>\nint main(void) {\n",
    );
    for asked in &list {
        probe += &format!("  printf(\"%zu\\n\", (size_t)({}));\n", asked.expression);
    }
    probe += "  return 0;\n}\n";
    let folder = std::env::temp_dir().join(format!("weft-verbs-abi-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (source, program) = (folder.join("probe.c"), folder.join("probe"));
    std::fs::write(&source, probe).unwrap();
    let built = Command::new("cc").arg(&source).arg("-o").arg(&program).status().unwrap();
    assert!(built.success(), "the probe does not compile");
    let said = Command::new(&program).output().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    let theirs: Vec<usize> = said.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(theirs.len(), list.len());
    for (asked, theirs) in list.iter().zip(theirs) {
        assert_eq!(asked.ours, theirs, "{}", asked.expression);
    }
}
